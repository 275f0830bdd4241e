// Sends the dashboard's requests to weir. The token is kept in this tab's storage, and is sent in a header, never in
// a URL.

const kKey = "weir-token";
const kPatience = 5000; // longest wait for a response, in milliseconds

export class Unauthorized extends Error {}
export class NotThere extends Error {}

export const hasToken = () => sessionStorage.getItem(kKey) !== null;
export const keepToken = (token) => sessionStorage.setItem(kKey, token);
export const forgetToken = () => sessionStorage.removeItem(kKey);

// Returns the response's JSON. Throws Unauthorized for 401, NotThere for 404, or an Error, each with weir's message.
export async function ask(path, body, method = body === undefined ? "GET" : "POST") {
  const headers = {};
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(kKey)}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    credentials: "omit",
    signal: AbortSignal.timeout(kPatience),
  });
  if (response.status === 401) throw new Unauthorized();
  const text = await response.text();
  if (response.status === 404) throw new NotThere(complaint(text));
  if (!response.ok) throw new Error(complaint(text) ?? `weir answered ${response.status}`);
  return JSON.parse(text);
}

// Returns true if this tab has the right token, or if weir needs none. Called before other requests, because browsers
// log every 401 as an error.
export const isAdmitted = async () => (await ask("/api/access")).admitted;

function complaint(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return undefined;
  }
}
