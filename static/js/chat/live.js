// An answer while it comes: paragraphs, lists and code, built of text nodes only. When it is
// complete the server renders it, with all of Markdown.

const FENCE = /^\s*(```|~~~)/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+/;
const HEADING = /^#{1,6}\s+/;
const INLINE = /\[(\d{1,4})\]|\*\*([^*\n]+)\*\*|`([^`\n]+)`/g;

export class Live {
  #element;
  #citation;
  #frame = 0;
  #settled = 0; // blocks that nothing is added to any more
  text = "";

  // `citation(number)` gives the element for [number], or null where there is no such source.
  constructor(element, citation) {
    this.#element = element;
    this.#citation = citation;
  }

  add(piece) {
    this.text += piece;
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  // What came from this character on was no answer.
  withdraw(start) {
    this.text = [...this.text].slice(0, start).join("");
    this.#settled = 0;
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const blocks = blocksOf(this.text);
    while (this.#element.children.length > this.#settled) this.#element.lastElementChild.remove();
    this.#element.append(...blocks.slice(this.#settled).map((block) => this.#built(block)));
    this.#settled = Math.max(blocks.length - 1, 0);
  }

  #built(lines) {
    if (FENCE.test(lines[0])) return code(lines);
    if (HEADING.test(lines[0])) return this.#line("h3", lines.join(" ").replace(HEADING, ""));
    if (lines.every((line, place) => ITEM.test(line) || (place && /^\s+/.test(line)))) {
      return this.#list(lines);
    }
    return this.#line("p", lines.join("\n"));
  }

  #list(lines) {
    const first = lines[0].match(ITEM)[1];
    const list = document.createElement(first ? "ol" : "ul");
    if (first) list.start = Number(first);
    const items = [];
    for (const line of lines) {
      if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
      else items[items.length - 1] += `\n${line.trim()}`;
    }
    list.append(...items.map((item) => this.#line("li", item)));
    return list;
  }

  #line(tag, text) {
    const element = document.createElement(tag);
    let at = 0;
    for (const found of text.matchAll(INLINE)) {
      element.append(text.slice(at, found.index), this.#inline(found));
      at = found.index + found[0].length;
    }
    element.append(text.slice(at));
    return element;
  }

  #inline([whole, number, strong, literal]) {
    if (number) return this.#citation(Number(number)) ?? whole;
    const element = document.createElement(strong ? "strong" : "code");
    element.textContent = strong ?? literal;
    return element;
  }
}

function code(lines) {
  const element = document.createElement("pre");
  const ends = lines.length > 1 && FENCE.test(lines.at(-1));
  element.append(document.createElement("code"));
  element.firstChild.textContent = lines.slice(1, ends ? -1 : undefined).join("\n");
  return element;
}

// Blocks as lists of lines: parted by empty lines, but for those inside of code.
function blocksOf(text) {
  const blocks = [];
  let block = [];
  let inCode = false;
  const close = () => {
    if (block.length) blocks.push(block);
    block = [];
  };
  for (const line of text.split("\n")) {
    const isFence = FENCE.test(line);
    if (isFence && !inCode) close();
    if (line.trim() || inCode) block.push(line);
    else close();
    if (isFence && inCode) close();
    if (isFence) inCode = !inCode;
  }
  close();
  return blocks;
}
