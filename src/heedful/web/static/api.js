// Questions to the server. A new question of a kind takes the place of the one before, which the server then drops.

const API = "/api/v1";
const PATIENCE = 3;
const running = new Map();

export class Problem extends Error {}

export const isDropped = (error) => error.name === "AbortError";

/** Ask for something; `kind` tells which earlier question this one replaces. */
export async function ask(path, body, kind = path) {
  running.get(kind)?.abort();
  const control = new AbortController();
  running.set(kind, control);
  const asked = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return answer(`${API}/${path}`, { ...asked, signal: control.signal });
}

export async function look(path, query = {}, kind = path) {
  running.get(kind)?.abort();
  const control = new AbortController();
  running.set(kind, control);
  return answer(`${API}/${path}?${new URLSearchParams(query)}`, { signal: control.signal });
}

async function answer(address, options, times = 1) {
  let response;
  try {
    response = await fetch(address, { cache: "no-store", credentials: "omit", ...options });
  } catch (error) {
    if (isDropped(error)) throw error;
    throw new Problem("The server does not answer. Is heedful serve still running?");
  }
  if ([429, 503].includes(response.status) && times < PATIENCE) {
    await new Promise((done) => setTimeout(done, 1000 * Number(response.headers.get("retry-after") ?? 1)));
    return answer(address, options, times + 1);
  }
  const content = await response.json().catch(() => ({ error: `The server said ${response.status}.` }));
  if (!response.ok) throw new Problem(content.error);
  return content;
}
