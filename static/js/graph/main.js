// The explorer: the address says what is shown, the server renders the words, this draws. Without
// it every link still works, and the list says what the drawing would.

import { Drawing } from "./drawing.js";
import { listenToKeys } from "./keys.js";
import { Words } from "./words.js";

const explorer = document.querySelector("[data-explorer]");
const canvas = explorer.querySelector("[data-canvas]");
const words = new Words(explorer);
const wide = matchMedia("(min-width: 40.01rem)");
let drawing = null;
let loading = null;

const here = () => new URL(location.href);

const withParameter = (name, value, from = here()) => {
  const url = new URL(from);
  if (!url.searchParams.getAll(name).includes(value)) url.searchParams.append(name, value);
  return url;
};

const chosenAt = (url) => url.searchParams.get("at") ?? url.searchParams.get("id");

// the drawing

function script(src) {
  return new Promise((resolve, reject) => {
    if (window.cytoscape) return resolve();
    const element = document.createElement("script");
    element.src = src;
    element.onload = resolve;
    element.onerror = () => reject(new Error(gettext("The part that draws could not be loaded.")));
    document.head.append(element);
  });
}

async function elements(url, signal) {
  const response = await fetch(canvas.dataset.elements + url.search, { signal });
  if (response.redirected) location.reload(); // logged out meanwhile: on to the login
  if (!response.ok) throw new Error(interpolate(gettext("The site answered %(status)s."), { status: response.status }, true));
  return response.json();
}

async function draw(url, signal) {
  if (canvas.hidden) return;
  words.busy(canvas, true);
  try {
    const [found] = await Promise.all([elements(url, signal), script(canvas.dataset.script)]);
    drawing ??= new Drawing(
      window.cytoscape,
      canvas.querySelector("[data-drawn]"),
      canvas.querySelector("[data-names]"),
      { choose, open: expand, pin: () => words.say(gettext("Pinned where it was put.")) },
    );
    const started = performance.now();
    const isDrawn = await drawing.show(found.elements);
    if (!isDrawn) return;
    drawing.choose(url.searchParams.get("at"));
    canvas.dataset.drawnIn = Math.round(performance.now() - started);
    canvas.dataset.nodes = found.elements.nodes.length;
    words.busy(canvas, false);
  } catch (error) {
    if (error.name !== "AbortError") words.failed(canvas, error);
  }
}

// going somewhere

// Shows another state: the words and the drawing of an address, side by side.
async function visit(url, { isNew = true } = {}) {
  loading?.abort();
  loading = new AbortController();
  const { signal } = loading;
  if (isNew) history.pushState(null, "", url);
  explorer.setAttribute("aria-busy", "true");
  await Promise.all([words.replace(url, signal), draw(url, signal)]);
  if (!signal.aborted) explorer.setAttribute("aria-busy", "false");
}

// Looks at one thing of the drawing: its words change, the rest stays.
function choose(id) {
  const url = here();
  if (id === null) url.searchParams.delete("at");
  else url.searchParams.set("at", id);
  history.replaceState(null, "", url);
  drawing?.choose(id);
  if (id) drawing?.reveal(id);
  words.about(url, id);
}

function look(id) {
  if (drawing?.isDrawn(id)) choose(id);
  else {
    const url = withParameter("id", id);
    url.searchParams.set("at", id);
    visit(url);
  }
}

function expand(id) {
  const url = withParameter("open", id);
  url.searchParams.set("at", id);
  words.say(gettext("Looking for what is linked to it…"));
  visit(url);
}

function hide(id) {
  const url = withParameter("hide", id);
  url.searchParams.delete("at");
  visit(url);
}

function pin(id) {
  words.say(drawing.togglePin(id) ? gettext("Pinned where it is.") : gettext("No longer pinned."));
}

function showAs(view) {
  canvas.hidden = view === "list";
  explorer.dataset.view = view;
  for (const button of explorer.querySelectorAll("[data-view-as]")) {
    button.setAttribute("aria-pressed", String(button.dataset.viewAs === view));
  }
  if (!canvas.hidden && !drawing) draw(here());
}

// what a person does

explorer.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const target = event.target.closest("a, button");
  if (!target) return;
  const { node, act, viewAs } = target.dataset;
  if (viewAs) showAs(viewAs);
  else if (act === "again") visit(here(), { isNew: false });
  else if (act === "fit") drawing?.fit();
  else if (act === "in") drawing?.zoom(1.4);
  else if (act === "out") drawing?.zoom(1 / 1.4);
  else if (act === "pin") pin(node);
  else if (node && !act && drawing && !canvas.hidden) look(node);
  else if (target.matches("[data-turn]")) visit(new URL(target.href));
  else return;
  event.preventDefault();
});

explorer.addEventListener("pointerover", (event) => {
  const row = event.target.closest("[data-node]");
  if (row && drawing && !canvas.contains(row)) drawing.point(row.dataset.node);
});
explorer.addEventListener("pointerout", (event) => {
  if (event.target.closest("[data-node]")) drawing?.point(null);
});

listenToKeys(canvas.querySelector("[data-drawn]"), {
  beside: (key) => {
    const id = drawing?.beside(key);
    if (id) choose(id);
  },
  expand: () => drawing?.chosen && expand(drawing.chosen),
  hide: () => drawing?.chosen && hide(drawing.chosen),
  pin: () => drawing?.chosen && pin(drawing.chosen),
  leave: () => choose(null),
  zoom: (by) => drawing?.zoom(by),
  fit: () => drawing?.fit(),
});

addEventListener("popstate", () => visit(here(), { isNew: false }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawing?.restyle());
new MutationObserver(() => drawing?.restyle()).observe(document.documentElement, {
  attributeFilter: ["data-theme"],
});

words.name(chosenAt(here()));
showAs(wide.matches ? "drawing" : "list");
