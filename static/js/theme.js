// Runs before the first paint, so that a chosen theme never flashes.
(() => {
  document.documentElement.classList.add("js");
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch { /* storage is switched off: the system's theme it is */ }
})();
