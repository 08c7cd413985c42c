// The chat page: asks, shows the answer as it comes, and puts the server's rendering in its place.

import { Composer } from "./composer.js";
import { copyAnswer } from "./copying.js";
import { listen } from "./sources.js";
import { stream } from "./stream.js";
import { Turn, wordsOf } from "./turn.js";

const SPOKEN = 1500;

const chat = document.querySelector("[data-chat]");
const thread = chat.querySelector("[data-thread]");
const spoken = chat.querySelector("[data-spoken]");
const templates = Object.fromEntries(
  [...chat.querySelectorAll("[data-template]")].map((each) => [each.dataset.template, each]),
);
const words = wordsOf(chat);
let running = null;

const say = (words) => {
  spoken.textContent = words;
};

const composer = new Composer(chat.querySelector("[data-composer]"), {
  onAsk: (question) => ask(question),
  onStop: () => running?.abort(),
});

async function ask(question, { replaced = null, reading = replaced?.dataset.reading } = {}) {
  const turn = new Turn(templates, question, words);
  if (reading) turn.element.dataset.reading = reading;
  show(turn.element, replaced);
  running = new AbortController();
  composer.busy = true;
  say(gettext("Looking in your documents."));
  try {
    const done = await follow(turn, Number(replaced?.dataset.turn) || 0);
    await settle(turn, done);
  } catch (error) {
    if (error.name === "AbortError") stopped(turn);
    else failed(turn, error);
  } finally {
    running = null;
    composer.busy = false;
  }
}

async function follow(turn, replaces) {
  const conversation = Number(chat.dataset.conversation) || 0;
  const { reading } = turn.element.dataset;
  const { pipeline, ...rest } = composer.options({ continues: conversation > 0 });
  const options = reading ? { ...rest, reading } : { ...rest, ...(pipeline && { pipeline }) };
  const body = { message: turn.question, ...options, ...(conversation && { conversation }), ...(conversation && replaces && { replaces }) };
  for await (const event of stream(chat.dataset.api, body, { signal: running.signal, token: composer.token })) {
    if (event.name === "metadata") begun(event.data, turn.question);
    turn.take(event);
    if (event.name === "done") return event.data;
  }
}

// The first answer makes the conversation, which has an address from now on.
function begun({ conversation }, question) {
  if (!conversation || chat.dataset.conversation) return;
  chat.dataset.conversation = conversation;
  history.replaceState(null, "", `${chat.dataset.start}${conversation}/`);
  for (const link of chat.querySelectorAll("[data-to]")) link.href = `${location.pathname}${link.dataset.to}/`;
  chat.querySelector("[data-title]").textContent = question.slice(0, 120);
  document.title = `${question.slice(0, 60)} · ragsite`;
  composer.box.placeholder = gettext("Ask a follow-up question");
  for (const form of chat.querySelectorAll("form[method=post]")) form.action = location.pathname;
}

function show(element, replaced) {
  chat.querySelector("[data-begin]")?.remove();
  for (const part of chat.querySelectorAll("[data-new]")) part.hidden = false;
  thread.hidden = false;
  for (const other of thread.querySelectorAll("[data-again]")) other.remove();
  if (replaced) replaced.replaceWith(element);
  else thread.append(element);
  element.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
}

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// With all of Markdown, what was found out about the answer, and what can be done with it.
async function settle(turn, { message }) {
  const rendered = message && (await fetched(message));
  const said = turn.live.text.trim().slice(0, SPOKEN);
  if (rendered) {
    put(turn.element, rendered);
    say(`${rendered.querySelector("[data-said]") ? said : rendered.querySelector(".note")?.textContent.trim()} ${interpolate(ngettext("%(count)s source.", "%(count)s sources.", turn.sources.cited), { count: turn.sources.cited }, true)}`);
  } else say(said);
}

async function fetched(message) {
  try {
    const answer = await fetch(`${chat.dataset.start}${chat.dataset.conversation}/turns/${message}/`);
    if (!answer.ok || answer.redirected) return null;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return page.querySelector(".turn");
  } catch {
    return null; // what was streamed stays
  }
}

// In place of the live one: what was opened stays open, and the focus where it was.
function put(live, rendered) {
  const focused = live.contains(document.activeElement) ? document.activeElement : null;
  for (const card of live.querySelectorAll(".source:has(details[open])")) {
    const same = rendered.querySelector(`.source[data-source="${card.dataset.source}"] details`);
    if (same) same.open = true;
  }
  const thought = rendered.querySelector("[data-thought]");
  if (thought) thought.open = live.querySelector("[data-thought]").open;
  live.replaceWith(rendered);
  const cite = focused?.dataset.cite;
  const source = focused?.closest(".source")?.dataset.source;
  if (cite) rendered.querySelector(`.cite[data-cite="${cite}"]`)?.focus();
  else if (source) rendered.querySelector(`.source[data-source="${source}"] summary`)?.focus();
}

function stopped(turn) {
  turn.stopped();
  say(gettext("Stopped."));
  retries(turn);
  composer.box.focus();
}

function failed(turn, error) {
  const isOut = error.status === 401 || (error.status === 403 && error.code === "not_authenticated");
  const login = isOut && `${chat.dataset.login}?next=${encodeURIComponent(location.pathname)}`;
  const told = isOut ? { message: gettext("You are logged out. Log in and ask again: the question is kept.") } : error;
  turn.failed(told, { login });
  if (isOut || !turn.sources.size) composer.offer(turn.question);
  retries(turn);
}

function retries(turn) {
  turn.element.querySelector("[data-retry]").addEventListener("click", () => {
    if (composer.box.value.trim() === turn.question) composer.box.value = "";
    ask(turn.question, { replaced: turn.element });
  });
}

listen(thread);

thread.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy-answer]");
  if (copy) copyAnswer(copy);
  const reading = event.target.closest("button[data-reading]");
  if (reading && !running) {
    event.preventDefault();
    ask(reading.textContent.trim(), { reading: reading.value });
  }
  const again = event.target.closest("[data-again]");
  if (again && !running) {
    event.preventDefault();
    const turn = again.closest(".turn");
    ask(turn.querySelector("[data-question]").textContent, { replaced: turn });
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) running.abort();
});

addEventListener("pagehide", () => running?.abort());

// A question that another page of the site brought is asked at once; one from elsewhere waits.
const isFromHere = document.referrer.startsWith(`${location.origin}/`);
const [{ type }] = performance.getEntriesByType("navigation");
if (chat.dataset.asks && isFromHere && type === "navigate") composer.form.requestSubmit();
