// What every page has: the theme button, "/" for the search box, copying a link, closing a menu.
(() => {
  const root = document.documentElement;
  const box = document.getElementById("q");

  for (const element of document.querySelectorAll("[data-js]")) element.hidden = false;

  const isDark = () =>
    root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;

  const toggleTheme = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch { /* it holds for this page, then */ }
  };

  const copyLink = async (button) => {
    try {
      await navigator.clipboard.writeText(new URL(button.dataset.copy, location.href).href);
      button.querySelector("[data-label]").textContent = "Copied";
    } catch {
      button.querySelector("[data-label]").textContent = "Copying is not allowed here";
    }
  };

  document.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) copyLink(copy);
    if (event.target.closest("[data-toggle-theme]")) toggleTheme();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && box) {
      event.preventDefault();
      box.focus();
      box.select();
    }
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    }
  });
})();
