// Helpers to create and fill elements. Texts are never parsed as HTML, because clients may have sent them.

// Returns a new element, as in h("td", { class: "number" }, "12", h("small", {}, "…")). Omits properties that are
// null or false.
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value == null || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// Returns a badge to put after the name of a shadow rule.
export const shadow_badge = () => h("span", { class: "badge note", title: "counted, never enforced" }, "shadow");

export const find = (selector) => document.querySelector(selector);

// Replaces an element's children. Does nothing while the user has selected text in the element, because the selection
// would be lost.
export function fill(element, ...children) {
  const selection = document.getSelection();
  const selecting = selection && !selection.isCollapsed && element.contains(selection.anchorNode);
  if (!selecting) element.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
}

// Sets the element's text if it has another text. Otherwise does nothing, because screen readers announce each change.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
