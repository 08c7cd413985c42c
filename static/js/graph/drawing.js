// The drawing of a graph: what is on it, where, and what is pointed at. Knows nothing of the page.

import { Labels } from "./labels.js";
import { edgeLook, look, nodeLook, radius, tokens } from "./look.js";

const CALM = matchMedia("(prefers-reduced-motion: reduce)");
// More than this, and only what is pointed at is marked; the rest is not made faint.
const LARGE = 600;
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

export class Drawing {
  #turn = 0;
  #overtaken = null;
  #worker = new Worker(new URL("layout-worker.js", import.meta.url), { type: "module" });

  // `tells` is called with what a person did: choose(id), open(id), pin(id).
  constructor(cytoscape, container, layer, tells) {
    this.container = container;
    this.cy = cytoscape({
      container,
      minZoom: 0.02,
      maxZoom: 4,
      boxSelectionEnabled: false,
      selectionType: "single",
    });
    this.labels = new Labels(this.cy, layer);
    this.#listen(tells);
    new ResizeObserver(() => this.#resized()).observe(container);
  }

  #listen(tells) {
    const { cy } = this;
    cy.on("tap", (event) => tells.choose(event.target === cy ? null : event.target.id()));
    cy.on("dbltap", "node", (event) => tells.open(event.target.id()));
    cy.on("mouseover", "node", ({ target }) => this.#point(target));
    cy.on("mouseout", "node", () => this.#point(null));
    cy.on("dragpan scrollzoom pinchzoom", () => (this.isMoved = true));
    cy.on("dragfree", "node", ({ target }) => {
      target.addClass("pinned");
      tells.pin(target.id());
    });
  }

  // Colours are read again: the theme may have changed.
  restyle() {
    const { cy } = this;
    this.colours = tokens(this.container);
    cy.batch(() => {
      cy.nodes().forEach((node) => void node.data(nodeLook(node.data(), this.colours)));
      cy.style(look(this.colours, this.isLarge));
    });
    this.labels.later();
  }

  // Shows these elements in place of those shown; what stays keeps its place. Resolves when drawn.
  async show({ nodes, edges }) {
    const turn = ++this.#turn;
    const ids = nodes.map(({ data }) => data.id);
    const at = new Map(ids.map((id, place) => [id, place]));
    const places = ids.map((id) => this.cy.getElementById(id).position() ?? null);
    const radii = nodes.map(({ data }) => radius(data.degree, data.kind));
    const kept = places.filter(Boolean).length;
    const isAnew = kept === 0 || kept < nodes.length / 8;
    const { x, y, isStale } = await this.#lay(turn, {
      radius: radii,
      edges: edges
        .map(({ data }) => [at.get(data.source), at.get(data.target)])
        .filter(([from, to]) => from !== to),
      aspect: Math.min(Math.max(this.cy.width() / this.cy.height(), 0.6), 2),
      roots: [...nodes.keys()].filter((place) => nodes[place].data.root),
      x: places.map((place) => (place && !isAnew ? place.x : NaN)),
      y: places.map((place) => (place && !isAnew ? place.y : NaN)),
    });
    if (isStale) return false;
    this.#replace(nodes, edges, { x, y });
    this.#fitTo(bounds(x, y, Math.max(...radii)), isAnew ? 0 : 150);
    return true;
  }

  // The places of a graph; stale where a newer one was asked for meanwhile.
  #lay(turn, graph) {
    this.#overtaken?.({ isStale: true });
    return new Promise((resolve, reject) => {
      this.#overtaken = resolve;
      this.#worker.onerror = () => reject(new Error(gettext("The places could not be worked out.")));
      this.#worker.onmessage = ({ data }) => data.turn === turn && resolve(data);
      this.#worker.postMessage({ turn, graph });
    });
  }

  #replace(nodes, edges, { x, y }) {
    const { cy } = this;
    const isMoving = !CALM.matches && nodes.length <= LARGE && cy.nodes().nonempty();
    const wasLarge = this.isLarge;
    this.isLarge = edges.length > LARGE;
    this.#mark(null);
    if (wasLarge !== this.isLarge) this.restyle();
    const wanted = new Set([...nodes, ...edges].map(({ data }) => data.id));
    const fresh = [];
    cy.batch(() => {
      cy.elements().filter((element) => !wanted.has(element.id())).remove();
      nodes.forEach(({ data }, place) => {
        const position = { x: x[place], y: y[place] };
        const full = { ...data, ...nodeLook(data, this.colours) };
        const drawn = cy.getElementById(data.id);
        if (drawn.empty()) {
          fresh.push({ group: "nodes", data: full, position, classes: data.root ? "root" : "" });
          return;
        }
        drawn.data(full).toggleClass("root", data.root);
        if (drawn.hasClass("pinned")) return;
        if (isMoving) drawn.animate({ position, duration: 150 });
        else drawn.position(position);
      });
      for (const { data } of edges) {
        if (cy.getElementById(data.id).nonempty()) continue;
        fresh.push({ group: "edges", data: { ...data, ...edgeLook(data, this.isLarge) } });
      }
      cy.add(fresh);
    });
    this.labels.rank();
  }

  // Lights a node that is pointed at elsewhere; null ends it.
  point(id) {
    const node = id === null ? null : this.cy.getElementById(id);
    this.#point(node?.nonempty() ? node : null);
  }

  // Marks a node and what is beside it; null ends it.
  choose(id) {
    const { cy } = this;
    this.chosen = id && cy.getElementById(id).nonempty() ? id : null;
    cy.$(".chosen").removeClass("chosen");
    if (this.chosen) cy.getElementById(id).addClass("chosen");
    this.#point(null);
  }

  #point(node) {
    const subject = node ?? (this.chosen ? this.cy.getElementById(this.chosen) : null);
    this.#mark(subject?.nonempty() ? subject : null);
    this.container.classList.toggle("pointing", Boolean(node));
    this.labels.later();
  }

  #mark(subject) {
    const { cy } = this;
    cy.batch(() => {
      this.marked?.removeClass("far near next pointed");
      this.marked = null;
      if (!subject) return;
      const around = subject.closedNeighborhood();
      this.marked = this.isLarge ? around : cy.elements();
      if (!this.isLarge) cy.elements().not(around).addClass("far");
      around.edges().addClass("near");
      around.nodes().addClass("next");
      subject.addClass("pointed");
    });
  }

  // The nearest node in the direction of an arrow key, seen from the chosen one.
  beside(key) {
    const [dx, dy] = ARROWS[key];
    const from = this.cy.getElementById(this.chosen ?? "");
    if (from.empty()) return this.#first();
    const start = from.position();
    let [best, least] = [null, Infinity];
    this.cy.nodes().forEach((node) => {
      const [x, y] = [node.position("x") - start.x, node.position("y") - start.y];
      const along = x * dx + y * dy;
      const aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (along <= 0.001 || aside > 2 * along) return;
      const linked = from.edgesWith(node).nonempty() ? 0.5 : 1;
      const far = (along + 2 * aside) * linked;
      if (far < least) [best, least] = [node.id(), far];
    });
    return best;
  }

  #first() {
    const roots = this.cy.nodes(".root");
    return (roots.nonempty() ? roots : this.cy.nodes()).first().id() ?? null;
  }

  // Moves the view, where a node is outside of it.
  reveal(id) {
    const node = this.cy.getElementById(id);
    if (node.empty()) return;
    const { x, y } = node.renderedPosition();
    const [width, height] = [this.cy.width(), this.cy.height()];
    if (x > 40 && y > 40 && x < width - 40 && y < height - 40) return;
    this.#move({ center: { eles: node } });
  }

  fit(duration = 150) {
    const places = this.cy.nodes().map((node) => node.position());
    if (!places.length) return;
    const [x, y] = [places.map((place) => place.x), places.map((place) => place.y)];
    this.#fitTo(bounds(x, y, 20), duration);
  }

  // Names stand beside and below the outermost nodes: they need room, too.
  #fitTo({ left, top, width, height }, duration = 150) {
    const { cy } = this;
    this.isMoved = false;
    const zoom = Math.min((cy.width() - 120) / width, (cy.height() - 64) / height, 1.6);
    const pan = {
      x: cy.width() / 2 - zoom * (left + width / 2),
      y: cy.height() / 2 - zoom * (top + height / 2),
    };
    if (duration) this.#move({ zoom, pan }, duration);
    else cy.stop().viewport({ zoom, pan });
  }

  zoom(by) {
    const { cy } = this;
    this.isMoved = true;
    const middle = { x: cy.width() / 2, y: cy.height() / 2 };
    cy.zoom({ level: cy.zoom() * by, renderedPosition: middle });
  }

  #move(view, duration = 150) {
    this.cy.stop();
    this.cy.animate({ ...view, duration: CALM.matches ? 0 : duration });
  }

  // A view that nobody has moved shows all of it in the new window, too.
  #resized() {
    this.cy.resize();
    if (!this.isMoved) this.fit(0);
    this.labels.choose();
  }

  togglePin(id) {
    return this.cy.getElementById(id).toggleClass("pinned").hasClass("pinned");
  }

  isDrawn(id) {
    return this.cy.getElementById(id).nonempty();
  }
}

function bounds(x, y, margin) {
  const [left, top] = [Math.min(...x) - margin, Math.min(...y) - margin];
  return {
    left,
    top,
    width: Math.max(...x) + margin - left,
    height: Math.max(...y) + margin - top,
  };
}
