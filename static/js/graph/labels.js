// Names over the drawing: as many as fit without touching, the most important first, in the size of
// the page's text however far the drawing is zoomed. Elements rather than the canvas, so that every
// script, direction and emoji is set by the browser.

const ROOM = 10_500; // square pixels of window for one name
const GAP = 3;
const SHORT = 26;
const BOLD = 1.1; // as wide as the same in plain letters

export class Labels {
  constructor(cy, layer) {
    this.cy = cy;
    this.layer = layer;
    this.shown = new Map();
    this.widths = new Map();
    this.pen = document.createElement("canvas").getContext("2d");
    this.pen.font = `12px ${getComputedStyle(layer).fontFamily}`;
    cy.on("render", () => this.#follow());
    cy.on("viewport", () => this.later());
  }

  // Chooses anew once the view has come to rest.
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.choose(), 60);
  }

  // The nodes by importance, when others are drawn.
  rank() {
    this.ranked = this.cy.nodes().toArray();
    this.ranked.sort((a, b) => importance(b) - importance(a) || (a.id() < b.id() ? -1 : 1));
    this.later();
  }

  choose() {
    const { cy } = this;
    const [width, height] = [cy.width(), cy.height()];
    const [first, next] = [cy.$(".chosen, .pointed, .root"), cy.$("node.next")];
    const inside = [...first, ...next, ...(this.ranked ?? [])].filter((node) => {
      const { x, y } = node.renderedPosition();
      return x > -20 && y > -20 && x < width + 20 && y < height + 20;
    });
    const circles = inside.slice(0, 140).map(circle);
    const most = Math.max(8, Math.round((width * height) / ROOM));
    const taken = [];
    const wanted = new Map();
    for (const node of inside) {
      if (wanted.has(node.id())) continue;
      if (wanted.size >= most) break;
      const box = this.#place(node, circles, taken, width, height);
      if (!box) continue;
      taken.push(box);
      wanted.set(node.id(), box);
    }
    this.#draw(wanted);
    this.#nameEdges(taken, circles);
    this.#follow();
  }

  #width(text) {
    if (!this.widths.has(text)) this.widths.set(text, this.pen.measureText(text).width);
    return this.widths.get(text);
  }

  // A free box below, above, right or left of a node; what is chosen is named in any case.
  #place(node, circles, taken, width, height) {
    const { x, y, r } = circle(node);
    const text = shortened(node);
    const [w, h] = [this.#width(text) * (isNear(node) ? BOLD : 1) + 6, 16];
    const sides = [
      [-w / 2, r + GAP], [-w / 2, -r - GAP - h], [r + GAP, -h / 2], [-r - GAP - w, -h / 2],
    ];
    for (const [dx, dy] of sides) {
      const box = { x: x + dx, y: y + dy, w, h, dx, dy, text };
      const isInside = box.x > 0 && box.y > 0 && box.x + w < width && box.y + h < height;
      const isFree =
        taken.every((other) => !overlap(box, other)) &&
        circles.every((other) => other.id === node.id() || !covers(other, box));
      if (isInside && isFree) return box;
    }
    if (!isNear(node)) return null;
    const left = Math.max(2, Math.min(x - w / 2, width - w - 2));
    return { x: left, y: y + r + GAP, w, h, dx: left - x, dy: r + GAP, text };
  }

  #draw(wanted) {
    for (const [id, label] of this.shown) {
      if (wanted.has(id)) continue;
      label.element.remove();
      this.shown.delete(id);
    }
    for (const [id, box] of wanted) {
      const node = this.cy.getElementById(id);
      let label = this.shown.get(id);
      if (!label) {
        label = { element: document.createElement("bdi") };
        this.layer.append(label.element);
        this.shown.set(id, label);
      }
      label.element.textContent = box.text;
      label.element.classList.toggle("strong", node.hasClass("chosen") || node.hasClass("root"));
      label.element.classList.toggle("far", node.hasClass("far"));
      Object.assign(label, { node, dx: box.dx, dy: box.dy });
    }
  }

  // The relations beside what is pointed at, each in the middle of its edge.
  #nameEdges(taken, circles) {
    for (const label of this.edges ?? []) label.element.remove();
    this.edges = [];
    for (const edge of this.cy.edges(".near").toArray().slice(0, 60)) {
      const text = edge.data("says");
      const { x, y } = middle(edge);
      const w = this.#width(text) * 0.9 + 4;
      const box = { x: x - w / 2, y: y - 7, w, h: 14 };
      if (taken.some((other) => overlap(box, other))) continue;
      if (circles.some((other) => covers(other, box))) continue;
      taken.push(box);
      const element = document.createElement("bdi");
      element.className = "relation";
      element.textContent = text;
      this.layer.append(element);
      this.edges.push({ element, edge, w });
    }
  }

  #follow() {
    for (const { element, node, dx, dy } of this.shown.values()) {
      const { x, y } = node.renderedPosition();
      element.style.transform = `translate(${Math.round(x + dx + 3)}px, ${Math.round(y + dy)}px)`;
    }
    for (const { element, edge, w } of this.edges ?? []) {
      const { x, y } = middle(edge);
      element.style.transform = `translate(${Math.round(x - w / 2)}px, ${Math.round(y - 7)}px)`;
    }
  }
}

const isNear = (node) => ["chosen", "pointed", "root"].some((name) => node.hasClass(name));

const importance = (node) => node.data("size") + (node.data("kind") === "chunk" ? -8 : 0);

const circle = (node) => ({
  ...node.renderedPosition(),
  r: (node.data("size") / 2) * node.cy().zoom(),
  id: node.id(),
});

const middle = (edge) => {
  const [a, b] = [edge.source().renderedPosition(), edge.target().renderedPosition()];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
};

const shortened = (node) => {
  const name = node.data("name").trim() || node.id();
  const most = isNear(node) ? 64 : SHORT;
  const letters = [...name];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
};

const overlap = (a, b) =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

const covers = ({ x, y, r }, box) => {
  const dx = x - Math.max(box.x, Math.min(x, box.x + box.w));
  const dy = y - Math.max(box.y, Math.min(y, box.y + box.h));
  return dx * dx + dy * dy < r * r;
};
