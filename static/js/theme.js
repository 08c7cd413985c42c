// Runs before the first paint, so that a chosen theme never flashes.
(() => {
  document.documentElement.classList.add("js");
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    if (localStorage.getItem("keys") === "off") document.documentElement.dataset.keys = "off";
  } catch { /* storage is switched off: the system's theme it is */ }
})();
