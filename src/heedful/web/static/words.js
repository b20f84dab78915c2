// The vocabulary of the model: a few words at a time, as the server finds them.

import { isDropped, look } from "./api.js";
import { $, el, later } from "./dom.js";
import { sortable, wordColumns } from "./scores.js";

const MOST = 200;
let shown = "";

export function watchWords(model, complain) {
  const refresh = async () => {
    if (!$("words").open) return;
    const find = $("words-find").value.trim();
    if (shown === `${model()} ${find}`) return;
    try {
      const table = await look("tokens", { model: model(), find, by: "attention", limit: MOST });
      shown = `${model()} ${find}`;
      sortable($("words-table"), wordColumns(table.columns), table.rows, { by: "attention a", most: 25 });
      const told = `${table.rows.length.toLocaleString("en")} of ${table.total.toLocaleString("en")}, those that ask for most attention`;
      $("words-table").append(el("p", { class: "rest" }, told));
    } catch (error) {
      if (!isDropped(error)) complain(error);
    }
  };
  $("words").addEventListener("toggle", refresh);
  $("words-find").addEventListener("input", later(250, refresh));
  return refresh;
}
