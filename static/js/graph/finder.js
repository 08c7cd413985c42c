// Finding a node by its name while typing: a box with a list of what fits, as WAI-ARIA's combobox
// asks. Without it the form leads to a page with the same list.

const box = document.querySelector("[data-finder]");
const list = document.getElementById(box.getAttribute("aria-controls"));
let asked = null;
let timer = 0;
let place = -1;

const options = () => [...list.querySelectorAll("[role=option]")];

function show(isOpen) {
  list.hidden = !isOpen;
  box.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) mark(-1);
}

function mark(next) {
  place = next;
  options().forEach((option, at) => option.setAttribute("aria-selected", String(at === place)));
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
    mark(-1);
    show(true);
  } catch { /* a newer question, or no answer: the form itself still works */ }
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
    location.assign(options()[place].dataset.href);
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const count = options().length;
    if (list.hidden || !count) ask();
    else mark((place + (event.key === "ArrowDown" ? 1 : place < 0 ? 0 : -1) + count) % count);
  }
});

list.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) location.assign(option.dataset.href);
});
box.addEventListener("blur", () => show(false));
