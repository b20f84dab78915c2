// What happens when: a text is typed, a word clicked, a slider moved. The state is one value; the page follows it.

import { ask, isDropped, look } from "./api.js";
import { $, counted, el, later, percent } from "./dom.js";
import { showCurve, showPlace, showRankings } from "./erasing.js";
import { clearOther, showOther } from "./other.js";
import { scoreColumns, sortable } from "./scores.js";
import { START, erased, read, write } from "./state.js";
import { bars, kindsOf, mark, moveByKeys, nodesOf, placed, strip, wordStrip } from "./strips.js";
import { watchWords } from "./words.js";

let state = { ...START };
let runs = [];
let readings = []; // of the model, and of the one beside it: {name, explained, node, gone, after}
let erasure = null; // of the first
let turn = 0; // which text is being read: answers to earlier ones are dropped
let asked = 0; // the same of erasures

const served = (name) => runs.find((run) => run.name === name) ?? runs[0];
const noun = () => served(state.model).unit;
const shown = () => readings[0]?.explained.text === state.text; // else it waits to be read, and positions are of the text before
const course = () => erasure?.rankings.find(({ ranking }) => ranking === state.by) ?? erasure?.rankings[0];

function complain(error) {
  if (isDropped(error)) return;
  $("problem").textContent = error.message;
  $("problem").hidden = false;
}

const keepState = later(150, () => write(state));

function change(some) {
  state = { ...state, ...some };
  keepState();
}

// ---- a text is read

async function readText() {
  const mine = ++turn;
  $("problem").hidden = true;
  if (!state.text.trim()) {
    $("result").hidden = true;
    document.body.classList.remove("busy");
    return;
  }
  document.body.classList.add("busy");
  try {
    const names = [state.model, state.beside].filter(Boolean);
    const [first, second, all] = await Promise.all([
      ask("explain", { text: state.text, model: names[0] }, "explain"),
      names[1] ? ask("explain", { text: state.text, model: names[1] }, "explain beside") : null,
      ask("erase", { text: state.text, model: names[0] }, "courses"),
    ]);
    if (mine !== turn) return;
    erasure = all;
    readings = [first, second].filter(Boolean).map((explained, number) => reading(explained, number === 0));
    show();
  } catch (error) {
    if (mine === turn) complain(error);
  } finally {
    if (mine === turn) document.body.classList.remove("busy");
  }
}

function reading(explained, first) {
  const { text } = explained, units = placed(text, explained.tokens);
  const kinds = kindsOf(explained);
  const strips = kinds.map((kind, number) =>
    strip(text, units, explained.tokens.map((token) => token[kind]), kind, { buttons: first && number === 0 }));
  if (!kinds.length) strips.push(strip(text, units, units.map(() => 0), "alone", { buttons: first, label: "the text" }));
  if (explained.words) strips.splice(1, 0, wordStrip(text, explained.words));
  const { missing } = served(explained.model);
  const unknown = explained.tokens.filter((token) => !token.known).length;
  const decision = el("div", { class: "decision" });
  const node = el("section", { class: "card reading", "aria-label": served(explained.model).title },
    el("h2", {}, served(explained.model).title), decision, el("div", { class: "strips" }, ...strips,
      unknown ? el("p", { class: "rest" }, `${counted(unknown, noun())} not in its vocabulary; they share the scores of an unknown one.`) : null,
      missing.attention ? el("p", { class: "rest" }, missing.attention) : null));
  if (first) {
    strips[0].querySelectorAll(".strip").forEach(moveByKeys);
    node.addEventListener("click", (event) => {
      const button = event.target.closest("button.unit");
      if (button) toggle(Number(button.dataset.position));
    });
  }
  return { explained, units, node, nodes: nodesOf(node), decision, gone: new Set(), after: null };
}

function show() {
  $("result").hidden = false;
  $("readings").replaceChildren(...readings.map(({ node }) => node));
  $("readings").classList.toggle("two", readings.length > 1);
  const units = readings[0].units.length;
  const order = course()?.order ?? [];
  if (!erasure.rankings.some(({ ranking }) => ranking === state.by)) state.by = erasure.rankings[0].ranking;
  state.gone = Math.min(state.gone, order.length);
  state.toggled = state.toggled.filter((position) => position < units);
  showRankings(erasure, state.by, noun(), chooseRanking);
  $("slider").max = units;
  const ways = { delete: "the text is read without it", mask: "something unknown stands in its place", attention: "nothing attends to it" };
  const how = !served(state.model).missing.attention
    ? `Click a ${noun()} in the first strip, or move along an order. An erased ${noun()} gets no attention and the others share it: what the model then says follows exactly from its own numbers.`
    : `Click a ${noun()} in the first strip, or move along an order. The model is asked again for each erased ${noun()}: ${ways[erasure.level]}.`;
  $("erase-lead").textContent = how;
  showCourse();
  showScores();
  showMissing();
  keepState();
  showErasure();
}

function showMissing() {
  const { missing } = served(state.model);
  $("other-find").disabled = $("other-top").disabled = Boolean(missing.adversary);
  $("other-lead").textContent = missing.adversary ?? "If quite different weights give the very same probabilities, the weights alone do not explain them.";
  document.querySelectorAll("#other .unit").forEach((node) => (node.textContent = noun()));
  $("words").hidden = Boolean(missing.tokens);
  clearOther();
  $("other-top").checked = state.other === "top";
  if (state.other && !missing.adversary) findOther();
}

function showScores() {
  const { explained } = readings[0];
  const rows = explained.tokens.map((token, position) => ({ ...token, position }));
  const columns = scoreColumns(explained);
  const by = columns.find(({ key }) => key === "contribution" || key === "alone")?.name ?? "place";
  sortable($("scores-table"), columns, rows, { by, mark: (row) => row.position });
}

// ---- words are taken away

function chooseRanking(by) {
  change({ by, toggled: [] });
  showCourse();
  showErasure();
}

function toggle(position) {
  if (!shown()) return;
  const toggled = new Set(state.toggled);
  toggled.has(position) ? toggled.delete(position) : toggled.add(position);
  change({ toggled: [...toggled].sort((one, other) => one - other) });
  showErasure();
}

function showCourse() {
  showCurve(course(), erasure.predicted);
  $("slider").value = state.gone;
}

/** Of the model beside the first, the units that stand where erased ones stand. */
function sameUnits(positions) {
  const gone = new Uint8Array(readings[0].explained.text.length + 1);
  for (const position of positions) gone.fill(1, readings[0].units[position].start, readings[0].units[position].end);
  return new Set(readings[1].units.flatMap(({ start, end }, position) => (gone.subarray(start, end).includes(1) ? [position] : [])));
}

function showErasure() {
  const gone = erased(course().order, state.gone, state.toggled);
  const wanted = [gone, ...(readings[1] ? [sameUnits(gone)] : [])];
  readings.forEach((one, number) => {
    mark(one.nodes, wanted[number], one.gone);
    one.gone = wanted[number];
  });
  markRows(gone);
  showPlace(course(), state.gone);
  $("slider").setAttribute("aria-valuetext", counted(state.gone, noun()));
  $("restore").disabled = gone.size === 0;
  askErased();
}

function markRows(gone) {
  for (const row of $("scores-table").querySelectorAll("tr[data-position]"))
    row.classList.toggle("gone", gone.has(Number(row.dataset.position)));
}

async function askErased() {
  const mine = ++asked;
  try {
    const answers = await Promise.all(readings.map((one, number) =>
      one.gone.size
        ? ask("erase", { text: one.explained.text, model: one.explained.model, positions: [...one.gone], rankings: [] }, `erased ${number}`)
        : null));
    if (mine !== asked) return;
    readings.forEach((one, number) => {
      one.after = answers[number]?.after ?? null;
      showDecision(one);
    });
    showNow();
  } catch (error) {
    complain(error);
  }
}

function showDecision({ explained, after, decision }) {
  const { predicted, probabilities } = explained;
  const flipped = Boolean(after?.flipped);
  const said = el("p", { class: `said ${flipped ? "flipped" : ""}` }, el("b", {}, after?.predicted ?? predicted),
    flipped ? el("span", { class: "badge" }, `flipped, was ${predicted}`) : null);
  decision.replaceChildren(said, bars(probabilities, predicted, after));
}

function showNow() {
  const { explained, after, gone, units } = readings[0];
  const said = after ?? explained;
  const share = percent(said.probabilities[said.predicted]);
  const words = gone.size ? `${gone.size.toLocaleString("en")} of ${counted(units.length, noun())} erased` : "nothing erased";
  const flipped = after?.flipped ? `, flipped from ${explained.predicted}` : "";
  $("now").replaceChildren(el("b", {}, words), ` ${said.predicted} ${share}`, after?.flipped ? el("span", { class: "badge" }, `flipped, was ${explained.predicted}`) : "");
  $("live").textContent = `${said.predicted} ${share}${flipped}; ${words}.`;
}

// ---- another attention

async function findOther() {
  if (!shown()) return;
  try {
    const without = $("other-top").checked ? 1 : 0;
    change({ other: without ? "top" : "any" });
    const mine = turn;
    const found = await ask("adversary", { text: state.text, model: state.model, without_top: without });
    if (mine === turn) showOther(found, readings[0].explained);
  } catch (error) {
    complain(error);
  }
}

// ---- the frame

function showExamples() {
  const { examples, notice } = served(state.model);
  const buttons = examples.map(({ text, label, why }) =>
    el("button", { type: "button", class: "example", title: `${text.slice(0, 300)} (labelled ${label})`, on: { click: () => take(text) } },
      el("small", {}, why), el("span", {}, text.trim().slice(0, 60))));
  $("examples").replaceChildren(...buttons);
  $("notice").textContent = notice;
  $("notice").hidden = !notice;
}

function take(text) {
  change({ text, gone: 0, toggled: [], other: "" });
  $("text").value = text;
  readText();
}

function showModels() {
  const option = ({ name, title }) => el("option", { value: name }, title);
  $("model").replaceChildren(...runs.map(option));
  $("beside").replaceChildren(el("option", { value: "" }, "none"), ...runs.map(option));
  $("beside-label").hidden = runs.length < 2;
}

function follow(wanted) {
  state = wanted;
  if (!runs.some(({ name }) => name === state.model)) state.model = runs[0].name;
  if (state.beside && !runs.some(({ name }) => name === state.beside)) state.beside = "";
  showExamples();
  if (!state.text && !location.hash) state.text = served(state.model).examples.at(-1)?.text ?? "";
  $("text").value = state.text;
  $("model").value = state.model;
  $("beside").value = state.beside;
  readText().then(refreshWords);
}

function turnLight(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  $("theme").dataset.next = dark ? "light" : "dark";
}

function watch() {
  const typed = later(300, () => readText());
  $("text").addEventListener("input", () => {
    const typedText = $("text").value;
    change({ text: typedText.toWellFormed?.() ?? typedText, gone: 0, toggled: [], other: "" });
    typed();
  });
  $("model").addEventListener("change", () => {
    change({ model: $("model").value, gone: 0, toggled: [], other: "" });
    showExamples();
    readText().then(refreshWords);
  });
  $("beside").addEventListener("change", () => {
    change({ beside: $("beside").value });
    readText();
  });
  $("slider").addEventListener("input", () => {
    change({ gone: Number($("slider").value), toggled: [] });
    showErasure();
  });
  $("minimum").addEventListener("click", () => {
    if (!shown()) return;
    change({ gone: 0, toggled: erasure.minimum.positions });
    $("slider").value = 0;
    showErasure();
  });
  $("restore").addEventListener("click", () => {
    change({ gone: 0, toggled: [] });
    $("slider").value = 0;
    showErasure();
    $("slider").focus();
  });
  $("other-find").addEventListener("click", findOther);
  $("other-top").addEventListener("change", () => state.other && findOther());
  $("theme").addEventListener("click", () => turnLight($("theme").dataset.next));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => turnLight(document.documentElement.dataset.theme));
  addEventListener("hashchange", () => follow(read()));
  $("scores-table").addEventListener("click", () => readings[0] && markRows(readings[0].gone));
  $("link").hidden = !navigator.clipboard;
  $("link").addEventListener("click", async () => {
    write(state);
    await navigator.clipboard.writeText(location.href);
    $("link").textContent = "Copied";
    setTimeout(() => ($("link").textContent = "Copy link"), 1500);
  });
}

const refreshWords = watchWords(() => state.model, complain);
turnLight(null);
watch();
look("runs")
  .then((found) => {
    runs = found.runs;
    showModels();
    follow(read());
  })
  .catch(complain);
