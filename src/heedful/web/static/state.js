// What is on the screen, kept in the part of the address after #, which browsers do not send to servers.

export const START = { text: "", model: "", beside: "", by: "", gone: 0, toggled: [], other: "" };

export function read(hash = location.hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (value) => Math.max(0, Math.trunc(Number(value)) || 0);
  return {
    ...START,
    ...Object.fromEntries(["text", "model", "beside", "by", "other"].map((name) => [name, given.get(name) ?? ""])),
    gone: whole(given.get("gone")),
    toggled: (given.get("toggled") ?? "").split(",").filter((part) => part !== "").map(whole),
  };
}

export function write(state) {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const shown = Array.isArray(value) ? value.join(",") : value === 0 ? "" : String(value);
    if (shown !== "") kept.set(name, shown);  // the first word, which alone is taken away, is 0 too
  }
  const hash = `#${kept}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** The positions that are erased: the first so many of an order, but for those that were clicked. */
export function erased(order, gone, toggled) {
  const found = new Set(order.slice(0, gone));
  for (const position of toggled) found.has(position) ? found.delete(position) : found.add(position);
  return found;
}
