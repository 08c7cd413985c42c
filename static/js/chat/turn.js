// One question and its answer while it is made, from the first skeleton to the last token.

import { Live } from "./live.js";
import { Sources } from "./sources.js";

// Codes of failures whose own words tell more than the site's: as rag/views/turns.py has it.
const OWN_WORDS = new Set(["model_refused", "model_empty"]);

export class Turn {
  #templates;
  #words;

  // `words`: names of collections, and what is said of what is degraded and of failures, by code.
  constructor(templates, question, words) {
    this.#templates = templates;
    this.#words = words;
    this.question = question;
    this.element = templates.turn.content.firstElementChild.cloneNode(true);
    this.element.querySelector("[data-question]").textContent = question;
    this.sources = new Sources(this.element, templates.source, words.names);
    this.live = new Live(this.#part("said"), this.sources.citation);
  }

  #part(name) {
    return this.element.querySelector(`[data-${name}]`);
  }

  take({ name, data }) {
    this[`on_${name}`]?.(data);
  }

  on_metadata({ message, memory, pipeline }) {
    if (message) this.element.dataset.turn = message;
    if (pipeline) this.#say(gettext("Working through the pipeline"));
    if (memory) this.#recall(memory);
  }

  on_retrieval({ passages, degraded }) {
    this.sources.add(passages);
    for (const skeleton of this.element.querySelectorAll(".sources [data-skeleton]")) skeleton.remove();
    const count = this.sources.size;
    this.#say(count
      ? interpolate(ngettext("Reading %(count)s passage", "Reading %(count)s passages", count), { count }, true)
      : gettext("No passage was found"));
    if (degraded.length) this.#warn(degraded[0]);
  }

  on_node({ id, state }) {
    if (state === "started") this.#say(interpolate(gettext("Step: %(id)s"), { id }, true));
  }

  on_token({ text }) {
    if (this.state === "asking") this.#state("streaming");
    this.began ??= performance.now();
    this.#thoughtFor();
    this.live.add(text);
  }

  // What the model thinks stays folded, and is no part of the answer.
  on_reasoning({ text, withdrawn_from: start }) {
    const thought = this.#part("thought");
    this.began ??= performance.now();
    this.thought = performance.now() - this.began;
    if (this.state === "asking") this.#state("streaming");
    thought.hidden = false;
    thought.querySelector("[data-text]").append(text);
    if (start !== null) this.live.withdraw(start);
  }

  on_citation(citation) {
    this.sources.cite(citation);
    this.live.draw();
  }

  on_done() {
    this.#thoughtFor();
    this.live.draw();
    this.#state("done");
  }

  stopped() {
    this.live.draw();
    this.#end("stopped", this.live.text ? gettext("Stopped. This is as far as the answer came.") : gettext("Stopped. Nothing was answered yet."));
  }

  failed({ message, code }, { login } = {}) {
    this.live.draw();
    const words = this.#words.failures[code];
    this.#end("failed", words ?? message);
    const note = this.#part("outcome");
    const detail = words && OWN_WORDS.has(code) ? message : "";
    note.querySelector("[data-detail]").hidden = !detail;
    note.querySelector("[data-detail]").textContent = detail;
    note.classList.add("bad");
    note.setAttribute("role", "alert");
    const link = note.querySelector("[data-login]");
    link.hidden = !login;
    if (login) link.href = login;
  }

  // To the trace of the run that answered.
  lead(address) {
    const link = this.#part("trace");
    link.hidden = false;
    link.firstElementChild.href = address;
  }

  get state() {
    return this.element.dataset.state;
  }

  #state(state) {
    this.element.dataset.state = state;
    const skeleton = this.element.querySelector(".exchange > [data-skeleton]");
    skeleton?.remove();
    if (state !== "streaming") {
      this.#part("stage")?.remove();
      this.element.querySelector(".sources [data-skeleton]")?.remove();
      if (!this.sources.size) this.element.querySelector(".sources").hidden = true;
    }
  }

  #thoughtFor() {
    if (this.thought === undefined) return;
    const seconds = Math.max(Math.round(this.thought / 1000), 1);
    this.#part("thought").querySelector("[data-words]").textContent = interpolate(gettext("Thought for %(seconds)s s"), { seconds }, true);
  }

  #end(state, words) {
    this.#thoughtFor();
    this.#state(state);
    this.#part("outcome").hidden = false;
    this.#part("outcome").querySelector("[data-words]").textContent = words;
  }

  #say(words) {
    this.#part("stage").querySelector("[data-words]").textContent = words;
  }

  #warn(name) {
    this.#part("degraded").hidden = false;
    this.#part("degraded").querySelector("p").textContent = this.#words.degraded[name] ?? interpolate(gettext("Part of the search did not work (%(name)s), so something may be missing."), { name }, true);
  }

  #recall({ facts, context }) {
    const chips = [
      ...facts.map(({ key, value }) => [`${key.replaceAll("_", " ")}: ${value}`, `/memory/facts/${encodeURIComponent(key)}/forget/`]),
      ...context.map(({ user_message: said }) => [`“${said.slice(0, 60)}”`, `/memory/said/?said=${encodeURIComponent([...said].slice(0, 200).join(""))}`]),
    ];
    for (const [words, href] of chips) {
      const chip = this.#templates.chip.content.firstElementChild.cloneNode(true);
      chip.href = href;
      chip.querySelector("bdi").textContent = words;
      this.#part("recalled").append(chip);
    }
    this.#part("recalled").hidden = chips.length === 0;
  }
}

// What the page says in its attributes: names, and words by code.
export const wordsOf = ({ dataset }) => ({
  names: JSON.parse(dataset.names),
  degraded: JSON.parse(dataset.degraded),
  failures: JSON.parse(dataset.failures),
});
