// Runs before the first paint, so that a chosen theme never flashes.
(() => {
  document.documentElement.classList.add("js");
  // Texts of scripts are English, but for the catalog of another language that was loaded before.
  window.gettext ??= (text) => text;
  window.ngettext ??= (one, many, count) => (count === 1 ? one : many);
  window.interpolate ??= (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    if (localStorage.getItem("keys") === "off") document.documentElement.dataset.keys = "off";
  } catch { /* storage is switched off: the system's theme it is */ }
})();
