// Elements, whose text is only ever text: what weir says can hold anything that a client sent.

// h("td", { class: "number" }, "12", h("small", {}, "…")). A property that is null or false is left out.
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value == null || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// Behind the name of a rule that is not enforced.
export const shadow_badge = () => h("span", { class: "badge note", title: "counted, never enforced" }, "shadow");

export const find = (selector) => document.querySelector(selector);

// Gives an element other children, unless somebody is selecting text in it: that would be gone.
export function fill(element, ...children) {
  const selection = document.getSelection();
  const selecting = selection && !selection.isCollapsed && element.contains(selection.anchorNode);
  if (!selecting) element.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
}

// The same for text, without touching what stays: screen readers are told of changes alone.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
