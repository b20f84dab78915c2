// Elements are made one by one and texts are only ever text: what someone types cannot become markup.

export const $ = (id) => document.getElementById(id);

export function el(tag, { dataset = {}, vars = {}, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  return fill(node, { dataset, vars, ...attributes }, ...children);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function fill(node, { dataset, vars, on = {}, ...attributes }, ...children) {
  Object.assign(node.dataset, dataset);
  for (const [name, value] of Object.entries(vars)) node.style.setProperty(`--${name}`, value);
  for (const [name, value] of Object.entries(on)) node.addEventListener(name, value);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const percent = (share) => `${(100 * share).toFixed(1)} %`;
export const signed = (number, digits = 2) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(digits);
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** The function, called once things have been quiet for a moment. */
export function later(milliseconds, call) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
}
