// How nodes and edges look: colours from the page's tokens, shapes by kind, sizes by degree.

const SHAPES = { document: "round-rectangle", chunk: "rectangle" };

// In model units: half the width of a node.
export const radius = (degree, kind) =>
  kind === "chunk" ? 4.5 : 5 + Math.min(2.2 * Math.log2(1 + degree), 18);

// A token as a colour that a canvas understands, in the theme that is on.
export function tokens(element) {
  const probe = document.createElement("i");
  element.append(probe);
  const read = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const names = ["ground", "text", "quiet", "accent", "edge", "edge-strong"];
  const colours = Object.fromEntries(names.map((name) => [name, read(`--${name}`)]));
  colours.tones = Array.from({ length: 9 }, (_, tone) => read(`--tone-${tone}`));
  probe.remove();
  return colours;
}

// What the style sheet reads of a node and an edge: plain values, since functions are slow on many.
export const nodeLook = (data, colours) => ({
  size: 2 * radius(data.degree, data.kind),
  shape: SHAPES[data.kind] ?? "ellipse",
  colour: colours.tones[data.tone] ?? colours.tones[0],
});

export const edgeLook = (data, isLarge) => ({
  width: (isLarge ? 1.4 : 0.8) + 0.35 * Math.min(Math.log2(1 + Number(data.weight)), 6),
});

export const look = (colours, isLarge) => [
  {
    selector: "node",
    style: {
      width: "data(size)",
      height: "data(size)",
      shape: "data(shape)",
      "background-color": "data(colour)",
      "border-width": isLarge ? 0 : 1.5,
      "border-color": colours.ground,
      "overlay-opacity": 0,
    },
  },
  {
    selector: "edge",
    style: {
      width: "data(width)",
      "curve-style": isLarge ? "haystack" : "bezier",
      "haystack-radius": 0,
      "control-point-step-size": 28,
      "line-color": colours.edge,
      opacity: isLarge ? 0.7 : 0.9,
      "target-arrow-shape": isLarge ? "none" : "triangle",
      "target-arrow-color": colours.edge,
      "arrow-scale": 0.7,
      "overlay-opacity": 0,
      events: "no",
    },
  },
  {
    selector: "node.root",
    style: { "border-width": 3, "border-color": colours.text },
  },
  {
    selector: "node.pinned",
    style: { "border-style": "double", "border-width": 4, "border-color": colours.quiet },
  },
  { selector: ".far", style: { opacity: 0.16 } },
  {
    selector: "edge.near",
    style: {
      width: isLarge ? 4 : 1.8,
      "line-color": colours["edge-strong"],
      "target-arrow-color": colours["edge-strong"],
      opacity: 1,
      "z-index": 30,
    },
  },
  {
    selector: "node.next",
    style: {
      "z-index": 40,
      "border-width": isLarge ? 3 : 1.5,
      "border-color": isLarge ? colours.text : colours.ground,
    },
  },
  {
    selector: "node.chosen",
    style: {
      "border-width": 3,
      "border-style": "solid",
      "border-color": colours.accent,
      "underlay-color": colours.accent,
      "underlay-opacity": 0.25,
      "underlay-padding": isLarge ? 16 : 7,
      "underlay-shape": "ellipse",
      "z-index": 99,
    },
  },
];
