// A text as strips: its own letters, each unit shaded by a number. In the first strip units are buttons.

import { counted, el, percent, signed } from "./dom.js";

const LONG = 300;
const CHUNK = 250; // units of a long text that browsers may leave out of their work while they are out of sight
const MOST_BARS = 6;

const KINDS = {
  attention_weight: {
    name: "attention", symbol: "α", hue: "attended",
    words: "how much weight each one gets; the weights sum to one",
    note: (value) => `attention weight ${value.toFixed(3)}`,
  },
  contribution: {
    name: "used here", symbol: "α·z", hue: "signed",
    words: "what each gave to the decision: green for it, purple against it",
    note: (value) => `gave ${signed(value)} to the decision`,
  },
  push: {
    name: "would push", symbol: "z", hue: "signed",
    words: "what each would give if it had all attention",
    note: (value) => `would push ${signed(value)}`,
  },
  alone: {
    name: "alone", symbol: "", hue: "signed",
    words: "how far the probability of the decision falls when this one alone goes",
    note: (value) => `alone: the probability falls by ${signed(value, 3)}`,
  },
};

/** The strips that an explanation has numbers for. */
export const kindsOf = (explained) => Object.keys(KINDS).filter((kind) => explained.tokens[0]?.[kind] != null);

export function strip(text, units, values, kind, { buttons = false, label = null } = {}) {
  const { name, symbol, hue, words, note } = KINDS[kind];
  const most = Math.max(...values.map(Math.abs).filter(Number.isFinite), 1e-12);
  const body = el("div", {
    class: `strip ${units.length > LONG ? "long" : ""}`,
    role: "group",
    "aria-label": buttons ? `The text by ${name}: arrow keys move, Enter erases or restores` : `The text by ${label ?? name}`,
    tabindex: !buttons && units.length > LONG ? 0 : null,
  });
  let place = 0, part = body;
  units.forEach(({ start, end }, position) => {
    if (units.length > LONG && position % CHUNK === 0) body.append((part = el("div", { class: "chunk" })));
    if (start > place) part.append(text.slice(place, start));
    part.append(unit(text.slice(start, end), values[position] ?? 0, most, hue, note, position, buttons));
    place = end;
  });
  part.append(text.slice(place));
  const caption = el("p", { class: "caption" }, el("b", {}, label ?? name), symbol ? ` ${symbol}` : "", el("span", {}, ` · ${words}`));
  return el("div", { class: "stripe", dataset: { kind } }, caption, body);
}

function unit(letters, value, most, hue, note, position, button) {
  const shade = Math.min(1, Math.abs(value) / most);
  const colour = hue === "attended" ? "attended" : value >= 0 ? "towards" : "away";
  const attributes = { class: `unit ${colour}`, title: note(value), vars: { shade: shade.toFixed(3) }, dataset: { position } };
  if (!button) return el("span", attributes, letters);
  const own = { type: "button", "aria-pressed": "false", tabindex: position ? -1 : 0 };
  return el("button", { ...attributes, ...own }, letters);
}

/** Text with letters beyond the first plane: the server counts characters, scripts count halves of some. */
export function placed(text, units) {
  if (!/[\ud800-\udfff]/.test(text)) return units;
  const starts = [];
  let at = 0;
  for (const character of text) {
    starts.push(at);
    at += character.length;
  }
  starts.push(at);
  return units.map((one) => ({ ...one, start: starts[one.start], end: starts[one.end] }));
}

/** The words of a hierarchical model, each by its weight within its sentence. */
export function wordStrip(text, words) {
  const most = [];
  for (const { sentence, weight } of words) most[sentence] = Math.max(most[sentence] ?? 0, weight);
  const values = words.map(({ sentence, weight }) => weight / (most[sentence] || 1));
  const made = strip(text, placed(text, words), values, "attention_weight", { label: "within sentences" });
  made.classList.add("inner");
  made.querySelector(".caption").replaceChildren(
    el("b", {}, "within sentences"), el("span", {}, " · how much weight each word gets in its sentence"));
  return made;
}

/** For every position its nodes in all strips under a root but those of words within sentences. */
export function nodesOf(root) {
  const found = [];
  for (const node of root.querySelectorAll(".stripe:not(.inner) .unit")) (found[node.dataset.position] ??= []).push(node);
  return found;
}

/** Mark what is erased; only what changed is touched. */
export function mark(nodes, erased, before) {
  for (const position of new Set([...erased, ...before])) {
    const gone = erased.has(position);
    if (gone === before.has(position)) continue;
    for (const node of nodes[position] ?? []) {
      node.classList.toggle("gone", gone);
      if (node.tagName === "BUTTON") node.setAttribute("aria-pressed", String(gone));
    }
  }
}

/** Arrow keys move between the buttons of a strip, of which one can be reached by the tab key. */
export function moveByKeys(body) {
  body.addEventListener("keydown", (event) => {
    const own = event.target.closest("button.unit");
    if (!own) return;
    const all = [...body.querySelectorAll("button.unit")];
    const at = Number(own.dataset.position);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    own.tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  });
}

/** The probabilities as bars, with a mark where each was before anything was erased. */
export function bars(before, predicted, after) {
  const now = after?.probabilities ?? before;
  const names = Object.keys(before);
  const order = names.length > MOST_BARS
    ? [...names].sort((one, other) => Math.max(now[other], before[other]) - Math.max(now[one], before[one])).slice(0, MOST_BARS)
    : names;
  const winner = after?.predicted ?? predicted;
  const rows = order.map((name) =>
    el("div", { class: `bar ${name === winner ? "winner" : ""} ${name === predicted ? "decision" : "against"}` },
      el("span", { class: "name", title: name }, name),
      el("span", { class: "track", vars: { now: now[name], before: before[name] } }, el("i"), el("u")),
      el("span", { class: "value" }, percent(now[name]))));
  const rest = names.length - order.length;
  return el("div", { class: "bars" }, ...rows, rest > 0 ? el("p", { class: "rest" }, `and ${counted(rest, "other class").replace("classs", "classes")}`) : null);
}
