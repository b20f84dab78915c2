(() => {
"use strict";
const el = (name, given = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === false || value == null) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
};
const lighter = (colour) => {  // dark colours on a dark ground
  const parts = [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16)), weight = (.2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2]) / 255;
  return weight > .42 ? colour : `rgb(${parts.map((part) => Math.round(part + (255 - part) * (.5 - weight * .6))).join(",")})`;
};
const paintOf = ({ name, colour }) => !dark() ? colour : name === "none" ? "#8a93a0" : lighter(colour);
const shapes = { 1: [[0, -1.7], [1.6, 1.2], [-1.6, 1.2]], 2: [[0, -1.7], [1.7, 0], [0, 1.7], [-1.7, 0]] };  // a triangle, a diamond
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const later = (call) => { let asked = 0; return (...all) => { cancelAnimationFrame(asked); asked = requestAnimationFrame(() => call(...all)); }; };
const save = (name, kind, content) => {
  const link = el("a", { download: name, href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: kind })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const button = (words, call, given = {}) => el("button", { type: "button", class: "small", onclick: call, ...given }, words);
const inert = (text) => /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^([+-](\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[^'])$/i.test(text) ? `'${text}` : text;  // what a spreadsheet would run is a text
const cell = (value) => { const text = typeof value === "string" ? inert(value) : String(value); return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
const SVG = "http" + "://www.w3.org/2000/svg";  // a name, not an address
const nameOf = document.title.split(":")[0].replace(/[^\w.-]+/g, "-").slice(0, 60);

// ---- the page: light and dark, everything open, what a link leads to

const nav = document.querySelector("nav");
const sections = [...document.querySelectorAll("details.section")];
const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const repaint = new Set();
const theme = button("◐", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  repaint.forEach((call) => call());
}, { id: "theme", "aria-label": "dark or light", title: "dark or light" });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint.forEach((call) => call()));
const openAll = (open) => sections.forEach((section) => { section.open = open; });
const all = button("open all", () => { const open = sections.some((section) => !section.open); openAll(open); all.textContent = open ? "close all" : "open all"; });
if (sections.every((section) => section.open)) all.textContent = "close all";
nav.append(el("span", { class: "tools" }, all, theme));
const reach = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reach);
nav.addEventListener("click", (event) => { if (event.target.hash === location.hash) reach(); });
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// ---- words of a text: their numbers by hover, tap and arrow keys

const tip = el("div", { class: "tip", role: "status", hidden: true });
document.body.append(tip);
let here = null;
const note = (word) => {
  here?.classList.remove("here");
  here = word;
  tip.hidden = !word;
  if (!word) return;
  word.classList.add("here");
  tip.textContent = `${word.textContent.trim().slice(0, 40)}: ${word.dataset.note}`;
  const box = word.getClientRects()[0], wide = tip.offsetWidth / 2 + 4;
  tip.style.left = `${Math.max(wide, Math.min(document.documentElement.clientWidth - wide, box.left + box.width / 2)) + scrollX}px`;
  tip.style.top = `${box.top + scrollY}px`;
};
const wordAt = (event) => event.target.closest?.(".u[data-note]") ?? null;
addEventListener("pointerover", (event) => { if (event.pointerType === "mouse") note(wordAt(event)); });
addEventListener("click", (event) => note(wordAt(event)));
addEventListener("focusout", () => note(null));
addEventListener("keydown", (event) => {
  const strip = event.target.closest?.(".strip .text"), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
  if (event.key === "Escape") return note(null);
  if (!strip || !step) return;
  event.preventDefault();
  const words = [...strip.querySelectorAll(".u")], place = words.indexOf(here);
  const next = words[Math.max(0, Math.min(words.length - 1, place < 0 && step < 0 && step > -1e9 ? words.length - 1 : place + step))];
  next?.scrollIntoView({ block: "nearest" });
  note(next ?? null);
});

// ---- figures and tables: to be taken along, to be sorted

function drawn(svg, use) {
  const copy = svg.cloneNode(true), box = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", box.width); copy.setAttribute("height", box.height); copy.removeAttribute("style");
  use('<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy), box);
}
function bitmap(source, box, use) {
  const picture = new Image();
  picture.onload = () => {
    const canvas = el("canvas", { width: Math.round(2 * box.width), height: Math.round(2 * box.height) }), pen = canvas.getContext("2d");
    pen.fillStyle = "#fff"; pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(use, "image/png");
  };
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source);
}
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg"), name = figure.dataset.name ?? figure.id;
  if (!svg) continue;
  figure.append(el("div", { class: "saving" },
    button("SVG", () => drawn(svg, (source) => save(`${name}.svg`, "image/svg+xml", source)), { "aria-label": `save the figure ${name} as SVG` }),
    button("PNG", () => drawn(svg, (source, box) => bitmap(source, box, (blob) => save(`${name}.png`, "image/png", blob))), { "aria-label": `save the figure ${name} as PNG` })));
}
const scrolls = later(() => { for (const wide of document.querySelectorAll(".wide")) { if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0; else wide.removeAttribute("tabindex"); } });
addEventListener("resize", scrolls);
const worth = (words) => { const number = parseFloat(words.replace(/,/g, "").replace("−", "-").replace(/^[^\d.+-]+/, "")); return Number.isNaN(number) ? -Infinity : number; };
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], first = [...body.rows];
  heads.forEach((head, place) => {
    const texts = first.map((row) => row.cells[place].textContent.trim());
    const words = texts.filter((text) => text && !/\d|^[–—-]$/.test(text)).length > texts.length / 2 || (place === 0 && texts.some((text) => /^\p{L}/u.test(text)));
    if (words) { head.classList.add("words"); first.forEach((row) => row.cells[place].classList.add("words")); }
    if (first.length < 2) return;
    const label = head.textContent;
    head.replaceChildren(button(label, () => {
      const now = head.getAttribute("aria-sort"), up = now ? now === "descending" : words;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const by = (row) => row.cells[place].textContent.trim();
      body.append(...[...body.rows].sort((one, other) => (up ? 1 : -1) * (words ? by(one).localeCompare(by(other)) : worth(by(one)) - worth(by(other)))));
    }, { class: "" }));
  });
  const kept = table.closest(".table")?.querySelector("script.csv");
  if (kept) table.closest(".table").append(el("div", { class: "saving" },
    button("CSV", () => save(`${table.dataset.name}.csv`, "text/csv", JSON.parse(kept.textContent)), { "aria-label": `save the table ${table.dataset.name} as CSV` })));
}

for (const table of document.querySelectorAll("table:not(.sortable)")) {  // as it stands
  const name = table.closest("[id]").id;
  table.closest(".wide").after(el("div", { class: "saving" }, button("CSV", () => save(`${name}.csv`, "text/csv",
    csv([...table.rows].map((row) => [...row.cells].map((one) => one.textContent.trim().replace(/\s+/g, " "))))), { "aria-label": `save the table ${name} as CSV` })));
}

// ---- the vocabulary as a map

function map(root, data) {
  const count = data.tokens.length, noun = "token";
  const shown = new Set(data.groups.keys());
  let towards = data.polarity.length - 1, found = [], at = -1, frame = null, cells = new Map(), spread = null;
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "Every token as a point: what it pushes across, attention up. Arrow keys move through the tokens; the search finds one." });
  const tip = el("div", { class: "tip", hidden: true }), told = el("p", { class: "told numbers", "aria-live": "polite" });
  const search = el("input", { type: "search", placeholder: "find a token", "aria-label": "find a token", oninput: later(() => seek(search.value)) });
  const list = el("ul", { class: "found" });
  const choose = data.polarity.length > 1 ? el("label", {}, "push towards", el("select", { onchange: (event) => { towards = Number(event.target.value); frame = null; paint(); } },
    ...data.classes.map((name, place) => el("option", { value: place, selected: place === towards }, name)))) : null;
  const chips = data.groups.map((group, place) => el("label", { class: "chip" },
    el("input", { type: "checkbox", checked: true, onchange: (event) => { event.target.checked ? shown.add(place) : shown.delete(place); paint(); } }),
    dot(group), `${group.name} (${data.group.filter((one) => one === place).length.toLocaleString("en")})`));
  const whole = button("whole map", () => { frame = null; paint(); }, { hidden: true });
  const closer = button("closer", () => {  // around the token that is looked at, or the middle
    const { x0, x1, y0, y1 } = spread, x = at >= 0 ? xs()[at] : (x0 + x1) / 2, y = at >= 0 ? ys[at] : (y0 + y1) / 2;
    frame = { x: [x - (x1 - x0) / 4, x + (x1 - x0) / 4], y: [y - (y1 - y0) / 4, y + (y1 - y0) / 4] };
    paint();
  });
  root.replaceChildren(
    el("div", { class: "controls" }, search, choose, el("div", { class: "chips" }, ...chips), closer, whole,
      button("CSV", () => save(`${nameOf}-tokens.csv`, "text/csv", csv([["token", "group", "count", "attention", ...names()],
        ...data.tokens.map((token, k) => [token, data.groups[data.group[k]].name, data.count[k], data.attention[k] / 1000, ...data.polarity.map((one) => one[k] / 1000)])])), { "aria-label": "save the tokens as CSV" })),
    list, el("div", { class: "map" }, canvas, tip), told,
    el("div", { class: "saving" }, button("SVG", () => save(`${nameOf}-map.svg`, "image/svg+xml", svgOf()), { "aria-label": "save the map as SVG" }),
      button("PNG", () => bitmap(svgOf(), spread, (blob) => save(`${nameOf}-map.png`, "image/png", blob)), { "aria-label": "save the map as PNG" })),
    el("p", { class: "numbers" }, `${count === data.of ? `All ${counted(count, noun)}` : `The ${counted(count, noun)} that occur most, of ${data.of.toLocaleString("en")}`}; across: what a token pushes${data.polarity.length > 1 ? " towards the chosen class" : ` towards ${data.classes.at(-1)}`} (polarity score), up: the attention it gets (attention score). Point at a token or tap it; drag a rectangle by mouse to look closer.`));

  function dot({ colour, turn }) {  // as its points are: a square, a triangle, a diamond
    const one = el("span", { class: `dot turn${turn % 3}` });
    one.style.setProperty("--light", colour); one.style.setProperty("--dark", lighter(colour));
    return one;
  }
  function names() { return data.polarity.length > 1 ? data.classes.map((name) => `polarity_${name}`) : ["polarity"]; }
  const xs = () => data.polarity[towards], ys = data.attention;
  const ends = (values) => { let low = Infinity, high = -Infinity; for (const value of values) { if (value < low) low = value; if (value > high) high = value; } const room = (high - low) * .04 || 1; return [low - room, high + room]; };
  const size = () => ({ width: canvas.clientWidth, height: Math.round(Math.min(560, Math.max(300, canvas.clientWidth * .56))) });
  const LEFT = 52, BOTTOM = 40, TOP = 10, RIGHT = 12;

  function scale() {
    const { width, height } = size(), [x0, x1] = frame?.x ?? ends(xs()), [y0, y1] = frame?.y ?? ends(ys);
    return { x0, x1, y0, y1, width, height, x: (value) => LEFT + (value - x0) / (x1 - x0) * (width - LEFT - RIGHT), y: (value) => height - BOTTOM - (value - y0) / (y1 - y0) * (height - BOTTOM - TOP),
      backX: (place) => x0 + (place - LEFT) / (width - LEFT - RIGHT) * (x1 - x0), backY: (place) => y0 + (height - BOTTOM - place) / (height - BOTTOM - TOP) * (y1 - y0) };
  }
  function steps(low, high) {
    const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough)), step = unit * [1, 2, 5, 10].reduce((one, other) => Math.abs(other * unit - rough) < Math.abs(one * unit - rough) ? other : one);
    const all = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) all.push(Math.round(tick));
    return all;
  }
  const layer = document.createElement("canvas");

  function paint() {
    const ratio = devicePixelRatio || 1, at = scale(), { width, height } = at;
    if (!width) return;
    spread = at;
    for (const one of [canvas, layer]) { one.width = width * ratio; one.height = height * ratio; }
    canvas.style.height = `${height}px`;
    const pen = layer.getContext("2d"), looks = getComputedStyle(root);
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif"; pen.lineWidth = 1;
    const soft = looks.getPropertyValue("color");
    const line = dark() ? "#2c333d" : "#e6e6e6", strong = dark() ? "#5b6675" : "#9a9a9a";
    pen.textAlign = "center";
    for (const tick of steps(at.x0, at.x1)) { rule(pen, at.x(tick), TOP, at.x(tick), height - BOTTOM, tick ? line : strong); pen.fillStyle = soft; pen.fillText(String(tick / 1000), at.x(tick), height - BOTTOM + 16); }
    pen.textAlign = "right";
    for (const tick of steps(at.y0, at.y1)) { rule(pen, LEFT, at.y(tick), width - RIGHT, at.y(tick), tick ? line : strong); pen.fillStyle = soft; pen.fillText(String(tick / 1000), LEFT - 6, at.y(tick) + 4); }
    pen.textAlign = "center";
    pen.fillText(`pushes towards ${towardsWords()} →`, LEFT + (width - LEFT - RIGHT) / 2, height - 8, width - LEFT - RIGHT);
    pen.save(); pen.translate(13, (height - BOTTOM) / 2); pen.rotate(-Math.PI / 2); pen.fillText("attention score", 0, 0); pen.restore();
    pen.save(); pen.beginPath(); pen.rect(LEFT, TOP, width - LEFT - RIGHT, height - BOTTOM - TOP); pen.clip();
    cells = new Map();
    const radius = sizeOf();
    const order = [...data.groups.keys()].filter((group) => shown.has(group));
    const values = xs();
    const byGroup = data.groups.map(() => []);
    for (let k = 0; k < count; k++) if (shown.has(data.group[k])) byGroup[data.group[k]].push(k);
    order.sort((one, other) => byGroup[other].length - byGroup[one].length);
    for (const group of order) {
      pen.fillStyle = paintOf(data.groups[group]); pen.globalAlpha = data.groups[group].name === "none" ? .35 : .7;
      const turn = data.groups[group].turn % 3;
      for (const k of byGroup[group]) {
        const x = at.x(values[k]), y = at.y(ys[k]);
        if (x < LEFT || x > width - RIGHT || y < TOP || y > height - BOTTOM) continue;
        if (!turn) pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
        else { pen.beginPath(); for (const [a, b] of shapes[turn]) pen.lineTo(x + a * radius, y + b * radius); pen.fill(); }
        const key = (x >> 4) * 4096 + (y >> 4), cell = cells.get(key);
        cell ? cell.push(k) : cells.set(key, [k]);
      }
    }
    pen.restore();
    whole.hidden = frame === null;
    show();
  }
  function svgOf() {
    const { width, height } = spread, ink = "#1c2430", at = spread, parts = [];
    const text = (x, y, words, more = "") => parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${words.replace(/[<>&]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</text>`);
    const line = (x1, y1, x2, y2, strong) => parts.push(`<path d="M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}" stroke="${strong ? "#9a9a9a" : "#e6e6e6"}"/>`);
    for (const tick of steps(at.x0, at.x1)) { line(at.x(tick), TOP, at.x(tick), height - BOTTOM, !tick); text(at.x(tick), height - BOTTOM + 16, String(tick / 1000), 'text-anchor="middle"'); }
    for (const tick of steps(at.y0, at.y1)) { line(LEFT, at.y(tick), width - RIGHT, at.y(tick), !tick); text(LEFT - 6, at.y(tick) + 4, String(tick / 1000), 'text-anchor="end"'); }
    const radius = sizeOf(), values = xs();
    for (const [group, own] of data.groups.entries()) if (shown.has(group)) {
      const points = [];
      for (let k = 0; k < count; k++) if (data.group[k] === group) {
        const x = at.x(values[k]), y = at.y(ys[k]);
        if (x >= LEFT && x <= width - RIGHT && y >= TOP && y <= height - BOTTOM) points.push(`M${(own.turn % 3 ? shapes[own.turn % 3] : [[-1, -1], [1, -1], [1, 1], [-1, 1]]).map(([a, b]) => `${(x + a * radius).toFixed(1)} ${(y + b * radius).toFixed(1)}`).join("L")}Z`);
      }
      parts.push(`<path d="${points.join("")}" fill="${own.colour}" fill-opacity="${own.name === "none" ? .35 : .7}"/>`);
    }
    for (const k of found.slice(0, 12)) text(at.x(values[k]) + 8, at.y(ys[k]) - 6, short(data.tokens[k]));
    text(LEFT + (width - LEFT - RIGHT) / 2, height - 8, `pushes towards ${towardsWords()}`, 'text-anchor="middle"');
    text(0, 0, "attention score", `text-anchor="middle" transform="translate(13 ${(height - BOTTOM) / 2}) rotate(-90)"`);
    return `\x3csvg xmlns="${SVG}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="${ink}"><rect width="100%" height="100%" fill="#fff"/>${parts.join("")}</svg>`;
  }
  const sizeOf = () => count > 20000 ? 1.6 : count > 4000 ? 2.2 : 3;
  const towardsWords = () => data.polarity.length > 1 ? data.classes[towards] : data.classes.at(-1);
  function rule(pen, x1, y1, x2, y2, colour) { pen.strokeStyle = colour; pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); }
  function show(box) {
    if (!spread) return;
    const ratio = devicePixelRatio || 1, pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0); pen.clearRect(0, 0, canvas.width, canvas.height); pen.drawImage(layer, 0, 0); pen.scale(ratio, ratio);
    const ink = getComputedStyle(root).getPropertyValue("--ink").trim() && (dark() ? "#e9e7e2" : "#1c2430");
    pen.strokeStyle = ink; pen.fillStyle = ink; pen.font = "600 13px system-ui, sans-serif";
    for (const k of found.slice(0, 40)) { ring(pen, k); if (found.length <= 12) pen.fillText(short(data.tokens[k]), spread.x(xs()[k]) + 8, spread.y(ys[k]) - 6); }
    if (at >= 0) { pen.lineWidth = 2; ring(pen, at); pen.lineWidth = 1; }
    if (box) { pen.setLineDash([4, 3]); pen.strokeRect(box.x, box.y, box.width, box.height); pen.setLineDash([]); }
    tip.hidden = at < 0;
    if (at >= 0) { tip.textContent = short(data.tokens[at], 40); tip.style.left = `${Math.min(spread.width - 60, Math.max(60, spread.x(xs()[at])))}px`; tip.style.top = `${Math.max(38, spread.y(ys[at]))}px`; }
    told.textContent = at < 0 ? "" : `${short(data.tokens[at], 80)}: ${data.groups[data.group[at]].name}, in the training split ${data.count[at].toLocaleString("en")} times; attention score ${(ys[at] / 1000).toFixed(2)}, pushes ${(xs()[at] / 1000).toFixed(2)}`;
  }
  function ring(pen, k) { pen.beginPath(); pen.arc(spread.x(xs()[k]), spread.y(ys[k]), 6, 0, 7); pen.stroke(); }
  function short(token, most = 24) { const signs = [...token]; return signs.length > most ? signs.slice(0, most - 1).join("") + "…" : token; }
  function near(x, y) {
    let best = -1, least = 18 * 18;
    for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++) for (const k of cells.get(((x >> 4) + i) * 4096 + (y >> 4) + j) ?? []) {
      const far = (spread.x(xs()[k]) - x) ** 2 + (spread.y(ys[k]) - y) ** 2;
      if (far < least) { least = far; best = k; }
    }
    return best;
  }
  function seek(words) {
    const sought = words.trim().toLowerCase();
    const starts = [], holds = [];
    if (sought) data.tokens.forEach((token, k) => { const low = token.toLowerCase(); if (low.startsWith(sought)) starts.push(k); else if (low.includes(sought)) holds.push(k); });
    starts.sort((one, other) => data.tokens[one].length - data.tokens[other].length);
    found = [...starts, ...holds];
    list.replaceChildren(...found.slice(0, 12).map((k) => el("li", {}, button(short(data.tokens[k]), () => { at = k; show(); }))), ...(sought ? [el("li", { class: "numbers" }, found.length > 12 ? `and ${(found.length - 12).toLocaleString("en")} more` : found.length ? "" : "no such token")] : []));
    at = found.length ? found[0] : -1;
    show();
  }
  let from = null;
  const where = (event) => { const box = canvas.getBoundingClientRect(); return { x: event.clientX - box.left, y: event.clientY - box.top }; };
  const boxed = (one, other) => ({ x: Math.min(one.x, other.x), y: Math.min(one.y, other.y), width: Math.abs(one.x - other.x), height: Math.abs(one.y - other.y) });
  canvas.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") { from = where(event); canvas.setPointerCapture(event.pointerId); } else { at = near(where(event).x, where(event).y); show(); } });
  canvas.addEventListener("pointermove", later((event) => { const here = where(event); if (from) show(boxed(from, here)); else { at = near(here.x, here.y); show(); } }));
  canvas.addEventListener("pointerup", (event) => {
    if (!from) return;
    const box = boxed(from, where(event)); from = null;
    if (box.width > 8 && box.height > 8) { frame = { x: [spread.backX(box.x), spread.backX(box.x + box.width)], y: [spread.backY(box.y + box.height), spread.backY(box.y)] }; paint(); } else show();
  });
  canvas.addEventListener("pointerleave", () => { if (!from && !found.length) { at = -1; show(); } });
  let line = null;
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const up = event.key === "ArrowUp" || event.key === "ArrowDown", values = up ? ys : xs();
    if (line?.by !== values) line = { by: values, order: [...Array(count).keys()].sort((one, other) => values[one] - values[other]) };
    const order = line.order.filter((k) => shown.has(data.group[k]));
    const place = at < 0 ? (step > 0 ? -1 : order.length) : order.indexOf(at);
    at = order[Math.min(order.length - 1, Math.max(0, place + step))] ?? -1;
    show();
  });
  new ResizeObserver(later(paint)).observe(canvas);
  repaint.add(paint);
  paint();
}

// ---- texts to be searched and looked into

const PAGE = 40, CHUNK = 400;

function instances(root, data) {
  const { texts, strips, traits, classes } = data;
  const asked = new Set();
  let shown = texts, most = PAGE, current = -1;
  const search = el("input", { type: "search", placeholder: "words in the text", "aria-label": "words in the text", oninput: later(() => { most = PAGE; filter(); }) });
  const sorts = { "as in the data": null, "surest first": (one, other) => other.sure - one.sure, "least sure first": (one, other) => one.sure - other.sure, "longest first": (one, other) => other.gaps.length - one.gaps.length };
  const order = el("select", { "aria-label": "order", onchange: () => filter() }, ...Object.keys(sorts).map((name) => el("option", {}, name)));
  const decided = el("select", { "aria-label": "decision", onchange: () => { most = PAGE; filter(); } }, el("option", { value: "" }, "any decision"), ...classes.map((name, place) => el("option", { value: place }, name)));
  const chips = traits.map(({ name, words, of }, place) => el("label", { class: "chip", title: words },
    el("input", { type: "checkbox", onchange: (event) => { event.target.checked ? asked.add(place) : asked.delete(place); most = PAGE; filter(); } }), `${name} (${of.toLocaleString("en")})`));
  const list = el("ul", { class: "list" }), told = el("p", { class: "numbers", "aria-live": "polite" }), detail = el("div", { class: "detail", "aria-live": "polite" });
  root.replaceChildren(
    el("div", { class: "controls" }, search, decided, order, el("div", { class: "chips" }, ...chips), button("CSV", table, { "aria-label": "save these texts as CSV" })),
    told, el("div", { class: "browser" }, list, detail));

  function filter() {
    const sought = search.value.trim().toLowerCase(), by = sorts[order.value];
    shown = texts.filter((one) => (!sought || one.text.toLowerCase().includes(sought)) && (decided.value === "" || one.predicted === Number(decided.value)) && [...asked].every((place) => one.traits.includes(place)));
    if (by) shown = [...shown].sort(by);
    const held = texts.length === data.of ? "" : ` The page holds ${texts.length.toLocaleString("en")} of ${counted(data.of, "text")}, evenly drawn; the numbers above are of all.`;
    const meant = [...asked].map((place) => ` ${traits[place].name}: ${traits[place].words}.`).join("");  // titles cannot be seen by touch
    told.textContent = `${counted(shown.length, "text")} of ${texts.length.toLocaleString("en")}.${held}${meant}`;
    fill();
    if (shown.length) look(shown[0]); else detail.replaceChildren(el("p", { class: "soft" }, "No text is like this."));
  }
  function fill() {
    list.replaceChildren(...shown.slice(0, most).map((one) => el("li", {}, el("button", { type: "button", "data-row": one.row, onclick: () => look(one) },
      el("b", {}, one.text.trim().slice(0, 120)), el("small", {}, `${classes[one.predicted]} ${(100 * one.sure).toFixed(0)} %`, wrong(one) ? el("span", { class: "bad" }, ` label ${classes[one.label]}`) : null)))),
      ...(shown.length > most ? [el("li", {}, button(`${(shown.length - most).toLocaleString("en")} more`, () => { most += PAGE; fill(); }))] : []));
    mark();
  }
  const wrong = (one) => one.label !== null && one.label !== one.predicted;
  function mark() { for (const one of list.querySelectorAll("button[data-row]")) one.setAttribute("aria-current", String(Number(one.dataset.row) === current)); }
  function look(one) {
    current = one.row; mark();
    const said = one.traits.map((place) => traits[place].name).join(" · ");
    const parts = strips.map((shading, place) => strip(shading.name, one, one.gaps, one.numbers[place], shading, place === 0 || shading.signed ? one.marks : []));
    if (one.within) parts.splice(1, 0, strip("within sentences", one, one.within.gaps, one.within.numbers, { note: "weight within its sentence {:.3f}" }, [], one.within.shades));
    detail.replaceChildren(...[el("p", { class: "head" }, el("span", {}, `text ${one.row}`), el("span", {}, `predicted ${classes[one.predicted]} (${(100 * one.sure).toFixed(1)} %)`), one.label === null ? null : el("span", {}, `label ${classes[one.label]}`),
      one.cut ? el("span", {}, `${one.cut.toLocaleString("en")} more ${data.unit} are not shown`) : null, said ? el("span", {}, said) : null), ...parts,
      one.needed.some((count) => count !== null) ? el("p", { class: "numbers" }, `The decision flips when so many ${data.unit} are erased: ${data.rankings.map((name, place) => `by ${name} ${one.needed[place] ?? "never"}`).join(", ")}.`) : null,
      !data.mark ? null : one.marks.length ? el("p", { class: "numbers" }, `Framed: ${one.marks.length.toLocaleString("en")} of ${(one.gaps.length / 2).toLocaleString("en")} ${data.unit}, ${data.mark}.`) : el("p", { class: "numbers" }, "Nothing flips this decision but erasing everything, if even that.")].filter((part) => part !== null));
  }
  function strip(name, one, gaps, numbers, { note, signed }, marks, shades = null) {
    const signs = one.letters ??= [...one.text], framed = new Set(marks), body = el("div", { class: "text", tabindex: "0", role: "group", "aria-label": `${name}: go through the words by the arrow keys` });
    const largest = Math.max(1e-9, ...[numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0)]);
    const [, before, digits, after] = /^(.*)\{:\+?\.(\d)f\}(.*)$/.exec(note) ?? [null, `${note} `, 3, ""], plus = note.includes("{:+");
    let place = 0, chunk = body;
    const units = gaps.length / 2;
    for (let k = 0; k < units; k++) {
      if (units > CHUNK && k % CHUNK === 0) body.append(chunk = el("span", { class: "chunk" }));
      if (gaps[2 * k] > 0) chunk.append(signs.slice(place, place + gaps[2 * k]).join(""));
      place += gaps[2 * k];
      const value = numbers[k] / 10 ** data.digits, share = shades ? shades[k] / 10 ** data.digits : Math.abs(numbers[k]) / largest;
      const span = el("span", { class: `u ${signed ? (value >= 0 ? "towards" : "away") : "attended"}${framed.has(k) ? " m" : ""}`, "data-note": `${before}${plus && value >= 0 ? "+" : ""}${value.toFixed(Number(digits))}${after}` }, signs.slice(place, place + gaps[2 * k + 1]).join(""));
      span.style.setProperty("--s", share.toFixed(2));
      chunk.append(span);
      place += gaps[2 * k + 1];
    }
    if (place < signs.length && signs.length - place < 5000) chunk.append(signs.slice(place).join(""));
    return el("div", { class: units > CHUNK ? "strip long" : "strip" }, el("div", { class: "name" }, name), body);
  }
  function table() {
    save(`${nameOf}-texts.csv`, "text/csv", csv([["row", "text", "predicted", "probability", "label", "units", "smallest set", ...traits.map(({ name }) => name)],
      ...shown.map((one) => [one.row, one.text, classes[one.predicted], one.sure, one.label === null ? "" : classes[one.label], one.gaps.length / 2 + one.cut, one.marks.length || "", ...traits.map((_, place) => one.traits.includes(place))])]));
  }
  filter();
}

// ---- what is seen first is drawn first

const draw = { vocabulary: map, instances };
function wake(section) {
  for (const root of section.querySelectorAll("[data-load]")) {
    const data = document.getElementById(root.dataset.load);
    delete root.dataset.load;
    draw[root.className](root, JSON.parse(data.textContent));
  }
}
for (const section of sections) {
  section.addEventListener("toggle", () => { if (section.open) { wake(section); scrolls(); } });
  if (section.open) wake(section);
}
scrolls();
reach();
})();
