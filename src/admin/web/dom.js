// Creates elements. Texts are never parsed as HTML, because they may contain anything that a client sent.

// Example: h("td", { class: "number" }, "12", h("small", {}, "…")). Properties that are null or false are omitted.
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value == null || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// A badge behind the name of a rule that is not enforced.
export const shadow_badge = () => h("span", { class: "badge note", title: "counted, never enforced" }, "shadow");

export const find = (selector) => document.querySelector(selector);

// Replaces an element's children, unless the user has selected text in it, because the selection would be lost.
export function fill(element, ...children) {
  const selection = document.getSelection();
  const selecting = selection && !selection.isCollapsed && element.contains(selection.anchorNode);
  if (!selecting) element.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
}

// Sets the text only if it differs, because screen readers announce each change.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
