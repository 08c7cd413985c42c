// The page of a pipeline: runs it, lights its nodes as they work, and shows the answer as it comes.

import { Composer } from "./composer.js";
import { listen } from "./sources.js";
import { stream } from "./stream.js";
import { Turn, wordsOf } from "./turn.js";

const here = document.querySelector("[data-pipeline]");
const thread = here.querySelector("[data-thread]");
const spoken = here.querySelector("[data-spoken]");
const drawing = document.querySelector("[data-drawing]");
const templates = Object.fromEntries(
  [...here.querySelectorAll("[data-template]")].map((each) => [each.dataset.template, each]),
);
let running = null;

const composer = new Composer(here.querySelector("[data-composer]"), {
  draft: "",
  onAsk: run,
  onStop: () => running?.abort(),
});

const nodeOf = (id) => drawing?.querySelector(`[data-node="${CSS.escape(id)}"]`);

function light({ id, state }) {
  const node = nodeOf(id);
  if (node) node.dataset.state = state;
}

function unlight() {
  for (const node of drawing?.querySelectorAll("[data-state]") ?? []) delete node.dataset.state;
}

async function run(question) {
  const turn = new Turn(templates, question, wordsOf(here));
  thread.replaceChildren(turn.element);
  thread.hidden = false;
  unlight();
  running = new AbortController();
  composer.busy = true;
  spoken.textContent = gettext("The pipeline runs.");
  try {
    const body = { message: question, pipeline: here.dataset.id, conversation: null };
    for await (const event of stream(here.dataset.api, body, { signal: running.signal, token: composer.token })) {
      if (event.name === "node") light(event.data);
      turn.take(event);
      if (event.name === "done") ended(turn, event.data);
    }
  } catch (error) {
    if (error.name === "AbortError") turn.stopped();
    else turn.failed(error);
    spoken.textContent = error.name === "AbortError" ? gettext("Stopped.") : "";
    turn.element.querySelector("[data-retry]").addEventListener("click", () => run(question));
    composer.offer(question);
  } finally {
    running = null;
    composer.busy = false;
    for (const node of drawing?.querySelectorAll("[data-state=started]") ?? []) node.dataset.state = "failed";
  }
}

function ended(turn, { trace }) {
  spoken.textContent = turn.live.text.trim().slice(0, 1500);
  if (trace) turn.lead(`${here.dataset.trace}${trace}/`);
  const none = document.querySelector("[data-none]");
  if (none) none.textContent = gettext("This was the first: see above.");
}

listen(thread);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) running.abort();
});

addEventListener("pagehide", () => running?.abort());
