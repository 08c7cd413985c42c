// Finding a node by its name while typing: a box with a list of what fits, as WAI-ARIA's combobox
// asks. What is chosen opens, or fills the box of a form (`data-fills`). Without it the form leads to
// a page with the same list, or takes a name.

for (const [at, box] of document.querySelectorAll("[data-finder]").entries()) {
  let list = document.getElementById(box.getAttribute("aria-controls"));
  if (!list) {
    list = document.createElement("ul");
    Object.assign(list, { id: `${box.id}-list`, className: "options", hidden: true });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", box.labels[0].textContent);
    box.after(list);
    const states = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false" };
    for (const [name, value] of Object.entries(states)) box.setAttribute(name, value);
    box.setAttribute("aria-controls", list.id);
  }
  let asked = null;
  let timer = 0;
  let place = -1;

  const options = () => [...list.querySelectorAll("[data-href]")];

  function show(isOpen) {
    list.hidden = !isOpen;
    box.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) mark(-1);
  }

  function mark(next) {
    place = next;
    options().forEach((option, index) => option.setAttribute("aria-selected", String(index === place)));
    const option = options()[place];
    if (option) {
      box.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else box.removeAttribute("aria-activedescendant");
  }

  async function ask() {
    asked?.abort();
    const text = box.value.trim();
    if (!text) return show(false);
    asked = new AbortController();
    const url = new URL(box.dataset.finder, location.href);
    url.searchParams.set("find", text);
    try {
      const response = await fetch(url, { signal: asked.signal });
      if (!response.ok || response.redirected) return show(false);
      list.innerHTML = await response.text();
      for (const option of options()) option.id = `${option.id}-${at}`;
      mark(-1);
      show(true);
    } catch { /* a newer question, or no answer: the form itself still works */ }
  }

  function choose(option) {
    if (!("fills" in box.dataset)) return location.assign(option.dataset.href);
    box.value = option.title;
    show(false);
  }

  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });

  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      show(false);
    } else if (event.key === "Enter" && options()[place]) {
      event.preventDefault();
      choose(options()[place]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const count = options().length;
      if (list.hidden || !count) ask();
      else mark((place + (event.key === "ArrowDown" ? 1 : place < 0 ? 0 : -1) + count) % count);
    }
  });

  list.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[data-href]");
    if (option) choose(option);
  });
  box.addEventListener("blur", () => show(false));
}
