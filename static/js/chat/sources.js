// Sources beside an answer: made of a template, lit from the answer and back, opened in place.

const slot = (card, name) => card.querySelector(`[data-slot="${name}"]`);

// Offsets count characters as the server does, not UTF-16 units.
const slice = (points, start, end) => points.slice(start, end).join("");

// Markdown without its signs, as common/plain_words.py has it: no line changes when the page is read anew.
const SIGNS = [
  [/^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*:?-*:?[ \t]*(?:\n|$(?![^]))/gm, ""],
  [/^[ \t]*(?:`{3,}|~{3,})[^`\n]*(?:\n|$(?![^]))/gm, ""],
  [/^\n*[ \t]*#{1,6}[ \t]+[^\n]*[^\s#][ \t#]*\n\s*(?=\S)/, ""],
  [/^[ \t]*#{1,6}[ \t]+([^\n]*[^\s#.:?!…])[ \t#]*\n\s*(?=\S)/gm, "$1: "],
  [/^[ \t]*[-*+][ \t]+(?=\S)/gm, "• "],
  [/\]\([^)\s]*\)/g, ""],
  [/!?\[|\]|`+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|^\s*#{1,6}\s/gm, ""],
  [/^[ \t]*\|[ \t]*/gm, ""],
  [/[ \t]*\|\s*$(?![^])/gm, ""],
  [/[ \t]*\|[ \t]*$/gm, ";"],
  [/\s*\|\s*/g, " · "],
];
const teaser = (text) => SIGNS.reduce((shown, [sign, words]) => shown.replace(sign, words), text);

export class Sources {
  #template;
  #names;
  #passages = new Map();
  #cited = new Map();

  // `names`: collections by slug.
  constructor(turn, template, names) {
    this.turn = turn;
    this.list = turn.querySelector(".sources ol");
    this.#template = template;
    this.#names = names;
  }

  get size() {
    return this.#passages.size;
  }

  get cited() {
    return this.#cited.size;
  }

  add(passages) {
    for (const passage of passages) {
      if (this.#passages.has(passage.number)) continue;
      this.#passages.set(passage.number, passage);
      this.list.append(this.#card(passage));
    }
  }

  cite(citation) {
    const passage = this.#passages.get(citation.number);
    if (!passage) return;
    const quotes = this.#cited.get(citation.number) ?? [];
    quotes.push([citation.start, citation.end]);
    this.#cited.set(citation.number, quotes);
    const card = cardOf(this.turn, citation.number);
    // Of several quotations the first says where.
    if (quotes.length === 1) {
      slot(card, "place").textContent = this.#place(citation);
      const link = slot(card, "link");
      const [address, place] = link.href.split("#passage");
      if (place !== undefined && address.includes("?chunk=")) {
        link.href = `${address}&quote=${citation.start}-${citation.end}#passage`;
      }
    }
    card.classList.add("cited");
    slot(card, "teaser").textContent = teaser(slice([...passage.text], 0, 240));
    slot(card, "text").replaceChildren(...parts(passage, quotes));
  }

  // The element for [number] in the answer.
  citation = (number) => {
    const passage = this.#passages.get(number);
    if (!passage) return null;
    const link = document.createElement("a");
    link.className = "cite";
    link.href = `#source-live-${number}`;
    link.dataset.cite = number;
    link.textContent = number;
    link.setAttribute("aria-label", interpolate(gettext("Source %(number)s: %(title)s"), { number, title: passage.title || passage.document_key }, true));
    return link;
  };

  #card(passage) {
    const card = this.#template.content.firstElementChild.cloneNode(true);
    card.id = `source-live-${passage.number}`;
    card.dataset.source = passage.number;
    card.classList.remove("cited");
    slot(card, "number").textContent = passage.number;
    slot(card, "title").textContent = passage.title || passage.document_key;
    slot(card, "place").textContent = this.#place(passage);
    slot(card, "text").textContent = passage.text;
    slot(card, "link").href = passage.url;
    return card;
  }

  #place(passage) {
    const path = passage.heading_path.filter((heading) => heading !== passage.title);
    const headings = path.slice(-2).join(" › ");
    const collection = this.#names[passage.collection] ?? passage.collection;
    return [collection, headings, place(passage.location)].filter(Boolean).join(" · ");
  }
}

// `page 3` and `row 7`, as the API says it, in the language of the page.
function place(location) {
  const [, kind, label] = /^(page|row) (.+)$/.exec(location) ?? [];
  if (kind === "page") return interpolate(gettext("page %(label)s"), { label }, true);
  return kind === "row" ? interpolate(gettext("row %(label)s"), { label }, true) : location;
}

function* parts(passage, quotes) {
  const points = [...passage.text];
  let at = 0;
  for (const [from, to] of [...quotes].sort((a, b) => a[0] - b[0])) {
    const start = Math.max(from - passage.start, at);
    const end = Math.min(to - passage.start, points.length);
    if (start >= end || end - start >= passage.text.trim().length) continue;
    const mark = document.createElement("mark");
    mark.textContent = slice(points, start, end);
    yield slice(points, at, start);
    yield mark;
    at = end;
  }
  yield slice(points, at);
}

const cardOf = (turn, number) => turn.querySelector(`.source[data-source="${number}"]`);
const citesOf = (turn, number) => turn.querySelectorAll(`.cite[data-cite="${number}"]`);

function numberAt(target) {
  return target.closest?.(".cite")?.dataset.cite ?? target.closest?.(".source")?.dataset.source;
}

// Listens for a whole thread: what is pointed at or focused lights its counterpart.
export function listen(thread) {
  const light = (target, lit) => {
    const turn = target.closest?.(".turn");
    const number = turn && numberAt(target);
    if (!number) return;
    cardOf(turn, number)?.classList.toggle("lit", lit);
    for (const cite of citesOf(turn, number)) cite.classList.toggle("lit", lit);
  };
  for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    thread.addEventListener(on, (event) => light(event.target, true));
    thread.addEventListener(off, (event) => light(event.target, false));
  }
  thread.addEventListener("click", (event) => {
    const cite = event.target.closest(".cite");
    if (!cite) return;
    event.preventDefault();
    open(cardOf(cite.closest(".turn"), cite.dataset.cite));
  });
}

function open(card) {
  if (!card) return;
  card.querySelector("details").open = true;
  card.querySelector("summary").focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
  card.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}
