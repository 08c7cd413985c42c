// The documentation: code can be copied, the list of pages is open where there is room.
(() => {
  const contents = document.querySelector("[data-contents]");
  const wide = matchMedia("(min-width: 60rem)");
  const unfold = () => { contents.open = wide.matches; };
  unfold();
  wide.addEventListener("change", unfold);
  const current = contents.querySelector("[aria-current]");
  if (wide.matches && current) current.scrollIntoView({ block: "nearest" });

  for (const block of document.querySelectorAll("article pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = gettext("Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.textContent);
        button.textContent = gettext("Copied");
      } catch {
        button.textContent = gettext("Copying is not allowed here");
      }
    });
    const box = document.createElement("div");
    box.className = "code";
    block.replaceWith(box);
    box.append(block, button);
  }
})();
