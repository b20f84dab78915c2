// Orders of erasure: how soon each flips the decision, and the way along one of them.

import { $, counted, el, percent, svg } from "./dom.js";

export const RANKINGS = {
  attention: "the most attended first",
  gradient: "where more weight would help the decision most",
  product: "attention times gradient",
  polarity: "those that would push most for the decision",
  margin: "those that gave most against the second class",
  random: "by lot",
  alone: "those without which the probability falls most",
};

const WIDE = 1000, HIGH = 260;

/** One radio button for each ranking, with how many units go until the decision flips. */
export function showRankings(erasure, chosen, noun, choose) {
  const box = $("rankings");
  const units = erasure.rankings[0]?.order.length ?? 1;
  const rows = erasure.rankings.map(({ ranking, erased, flipped_to }) => {
    const input = el("input", { type: "radio", name: "ranking", value: ranking, on: { change: () => choose(ranking) } });
    input.checked = ranking === chosen;
    const told = erased === null ? "never flips" : erased === units ? "flips with all erased" : `flips after ${erased.toLocaleString("en")} of ${units.toLocaleString("en")}`;
    return el("label", { class: "ranking", title: flipped_to ? `to ${flipped_to}` : null },
      input,
      el("span", { class: "what" }, el("b", {}, ranking), el("small", {}, RANKINGS[ranking] ?? "")),
      el("span", { class: "told" }, told, el("span", { class: "meter", vars: { share: erased === null ? 1 : erased / units, never: erased === null ? 1 : 0 } }, el("i"))));
  });
  box.replaceChildren(box.querySelector("legend"), ...rows);
  const smallest = erasure.minimum;
  const button = $("minimum");
  button.disabled = !smallest?.positions;
  button.textContent = smallest?.positions
    ? `Smallest set that flips: ${counted(smallest.positions.length, noun)}`
    : smallest ? "No set flips it" : "No smallest set known";
}

/** The probability of the decision along an order, as a picture; the flip is marked. */
export function showCurve(course, predicted) {
  const { erased, probability, flipped } = course.curve;
  const units = course.order.length;
  const x = (size) => (WIDE * size) / units, y = (share) => HIGH * (1 - share);
  const points = erased.map((size, number) => `${x(size).toFixed(1)},${y(probability[number]).toFixed(1)}`);
  const flip = course.erased === null ? WIDE : x(course.erased);
  const area = svg("polygon", { class: "area", points: `0,${HIGH} ${points.join(" ")} ${WIDE},${HIGH}` });
  const line = svg("polyline", { class: "line", points: points.join(" ") });
  const children = [area];
  flipped.forEach((other, number) => {
    const from = x(erased[number]), to = x(erased[number + 1] ?? units);
    if (other && to > from) children.push(svg("rect", { class: "flipped", x: from, y: 0, width: to - from, height: HIGH }));
  });
  if (course.erased !== null) children.push(svg("line", { class: "flip", x1: flip, x2: flip, y1: 0, y2: HIGH }));
  const now = svg("line", { class: "here", x1: 0, x2: 0, y1: 0, y2: HIGH });
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img",
    "aria-label": words(course, predicted) }, ...children, line, now);
  const share = flip / WIDE;
  const told = course.erased === units ? "flips only with everything erased" : `flips after ${course.erased} → ${course.flipped_to}`;
  const label = course.erased === null
    ? el("span", { class: "mark never" }, "never flips in this order")
    : el("span", { class: `mark ${share > 0.5 ? "left" : ""}`, vars: { at: share } }, told);
  $("curve").replaceChildren(el("span", { class: "axis" }, predicted), picture, label);
}

export function showPlace(course, gone) {
  const here = $("curve").querySelector(".here");
  const at = (WIDE * gone) / course.order.length;
  here?.setAttribute("x1", at);
  here?.setAttribute("x2", at);
}

function words(course, predicted) {
  const first = percent(course.curve.probability[0]);
  const flips = course.erased === null ? "It never flips." : `It flips after ${course.erased} to ${course.flipped_to}.`;
  return `Probability of ${predicted} along the order ${course.ranking}: ${first} at first. ${flips}`;
}
