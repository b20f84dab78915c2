// Tables whose columns can be sorted.

import { el, signed } from "./dom.js";

const FIRST = 100;

/** A table in a box: `columns` are {name, words, of, show, text}, the rows anything. */
export function sortable(box, columns, rows, { by, descending = true, mark = null, most = FIRST } = {}) {
  let state = { by, descending, most };
  const draw = () => {
    const column = columns.find(({ name }) => name === state.by);
    const order = [...rows.keys()].sort((one, other) => {
      const [a, b] = [column.of(rows[one]), column.of(rows[other])];
      const less = typeof a === "string" ? a.localeCompare(b) : (a ?? -Infinity) - (b ?? -Infinity);
      return (state.descending ? -less : less) || one - other;
    });
    const shown = order.slice(0, state.most).map((number) => {
      const row = el("tr", mark ? { dataset: { position: mark(rows[number]) } } : {});
      row.append(...columns.map((one) => el("td", { class: one.text ? "" : "number" }, one.show(one.of(rows[number])))));
      return row;
    });
    const more = rows.length - shown.length;
    box.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...columns.map(head))), el("tbody", {}, ...shown)),
      ...(more > 0 ? [el("button", { type: "button", class: "quiet more", on: { click: () => draw((state = { ...state, most: rows.length })) } }, `Show ${more.toLocaleString("en")} more`)] : []));
  };
  const head = ({ name, words, text }) => {
    const sorted = name === state.by ? (state.descending ? "descending" : "ascending") : null;
    const click = () => {
      const turned = name === state.by ? !state.descending : !text;
      state = { ...state, by: name, descending: turned };
      draw();
      box.querySelector(`button[data-column="${CSS.escape(name)}"]`)?.focus();
    };
    const arrow = sorted === "descending" ? "▼" : sorted === "ascending" ? "▲" : "";
    const button = el("button", { type: "button", title: words, dataset: { column: name }, on: { click } }, name,
      el("i", { "aria-hidden": "true" }, arrow));
    return el("th", { scope: "col", class: text ? "" : "number", "aria-sort": sorted }, button);
  };
  draw();
}

const number = (digits) => (value) => (value == null ? "–" : value.toFixed(digits));
const plus = (value) => (value == null ? "–" : signed(value));

export function scoreColumns(explained) {
  const unit = explained.unit;
  const all = [
    { name: "place", words: "where it stands, from 1 on", of: (row) => row.position + 1, show: String },
    { name: unit, words: "as it is written", of: (row) => row.token, show: (value) => value, text: true },
    { name: "attention α", key: "attention_weight", words: "how much weight it gets", show: number(3) },
    { name: "used α·z", key: "contribution", words: "what it gave to the decision", show: plus },
    { name: "push z", key: "push", words: "what it would give with all attention", show: plus },
    { name: "alone", key: "alone", words: "how far the probability falls without it", show: number(3) },
  ];
  return all
    .filter(({ key }) => !key || explained.tokens[0]?.[key] != null)
    .map((column) => ({ of: (row) => row[column.key], ...column }));
}

export function wordColumns(columns) {
  const shown = columns.filter((name) => ["token", "group", "attention"].includes(name) || name.startsWith("polarity"));
  const said = { token: "word", group: "group", attention: "attention a" };
  return shown.map((name) => ({
    name: said[name] ?? name.replace("polarity_", "z for ").replace(/^polarity$/, "polarity z"),
    words: { group: "the class in which it occurs by far most often", attention: "its attention score, before weights are made of it" }[name] ?? "",
    of: (row) => row[name],
    show: typeof name === "string" && ["token", "group"].includes(name) ? (value) => String(value) : number(2),
    text: ["token", "group"].includes(name),
  }));
}
