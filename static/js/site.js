// What every page has: the theme button, copying, menus that close, the list of keys.
(() => {
  const root = document.documentElement;
  const box = document.getElementById("q");
  const shortcuts = document.getElementById("shortcuts");

  for (const element of document.querySelectorAll("[data-js]")) element.hidden = false;

  const keep = (name, value) => {
    try {
      localStorage.setItem(name, value);
    } catch { /* it holds for this page, then */ }
  };

  const isDark = () =>
    root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;

  const toggleTheme = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep("theme", root.dataset.theme);
  };

  const copyFrom = async (button) => {
    const text = button.dataset.copyText ?? new URL(button.dataset.copy, location.href).href;
    try {
      await navigator.clipboard.writeText(text);
      button.querySelector("[data-label]").textContent = gettext("Copied");
    } catch {
      button.querySelector("[data-label]").textContent = gettext("Copying is not allowed here");
    }
  };

  document.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy], [data-copy-text]");
    if (copy) copyFrom(copy);
    if (event.target.closest("[data-toggle-theme]")) toggleTheme();
    const opener = event.target.closest("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens).showModal();
    // A click beside an open dialog is one on its backdrop.
    if (event.target === shortcuts) shortcuts.close();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target) || opener) menu.open = false;
    }
  });

  const single = document.querySelector("[data-single-keys]");
  if (single) {
    single.checked = root.dataset.keys !== "off";
    single.addEventListener("change", () => {
      root.dataset.keys = single.checked ? "on" : "off";
      keep("keys", root.dataset.keys);
    });
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable], dialog[open]");
    const isSingle =
      !typing && !event.ctrlKey && !event.metaKey && !event.altKey && root.dataset.keys !== "off";
    if (event.key === "/" && isSingle && box) {
      event.preventDefault();
      box.focus();
      box.select();
    }
    if (event.key === "?" && isSingle && shortcuts) shortcuts.showModal();
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    }
  });
})();
