// The keyboard on the drawing. Every key has a button or link that does the same.

export function listenToKeys(element, does) {
  const keys = {
    Enter: does.expand,
    h: does.hide,
    p: does.pin,
    Escape: does.leave,
    "+": () => does.zoom(1.4),
    "=": () => does.zoom(1.4),
    "-": () => does.zoom(1 / 1.4),
    0: does.fit,
  };
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isArrow = event.key.startsWith("Arrow");
    if (!isArrow && !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    if (isArrow) does.beside(event.key);
    else keys[event.key]();
  });

  const finder = document.querySelector("[data-finder]");
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select");
    if (document.documentElement.dataset.keys === "off") return;
    if (event.key !== "f" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    finder?.focus();
    finder?.select();
  });
}
