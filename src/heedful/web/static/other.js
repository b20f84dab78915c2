// Other weights with the same output, beside the model's own.

import { $, el, percent } from "./dom.js";
import { placed, strip } from "./strips.js";

const MOST = Math.log(2);

export function showOther(found, explained) {
  const units = placed(explained.text, explained.tokens);
  const box = $("other-found");
  if (found.jsd === null) {
    box.replaceChildren(el("p", {}, "There are no such weights: without what was asked to go, no weights give this output."));
    return;
  }
  const own = found.units.map((unit) => unit.attention_weight), other = found.units.map((unit) => unit.other_weight);
  const few = found.units.filter((unit) => unit.other_weight > 1e-9).length;
  const same = Object.keys(found.probabilities).map((name) =>
    `${name} ${percent(found.probabilities[name])} → ${percent(found.other_probabilities[name])}`);
  box.replaceChildren(
    el("div", { class: "jsd" },
      el("span", { class: "number" }, found.jsd.toFixed(2)),
      el("span", { class: "track", vars: { now: found.jsd / MOST }, role: "img", "aria-label": `${found.jsd.toFixed(2)} of at most 0.69` }, el("i")),
      el("span", {}, `JSD, of at most ${MOST.toFixed(2)}${found.exact ? "; none lies farther" : ""}`)),
    el("p", { class: "same" }, `The other attention rests on ${few} of ${found.units.length}. The output: ${same.slice(0, 4).join(", ")}.`),
    el("div", { class: "pair" },
      strip(explained.text, units, own, "attention_weight", { label: "the model's own" }),
      strip(explained.text, units, other, "attention_weight", { label: "another one" })));
}

export function clearOther() {
  $("other-found").replaceChildren();
}
