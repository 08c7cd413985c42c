// Places for nodes by forces (springs and charges, as Eades 1984 and many since), the same for the
// same graph: nothing is drawn by lot, and what is already placed stays, but for a little room.

import { Quadtree } from "./quadtree.js";

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const APART = 12; // between the rims of two nodes
const PUSH = 30; // strength of two nodes' pushing
const LENGTH = 30; // of an edge without strain
const PULL = 0.03; // towards the middle, the more the farther
const DRAG = 0.6; // what is left of a speed
const COLD = 0.002; // heat at the end; 1 at the start
const LOOSE = 1.1; // room around nodes, as a multiple of what they take up
const LOOSER = 20; // more of it where they are few

// graph: {radius: [..], edges: [[i, j], ..], roots: [i, ..], x: [..], y: [..], aspect}, with NaN for
// a node that has no place yet, and the window's width by its height. Returns {x, y}.
export function layout(graph) {
  const count = graph.radius.length;
  const state = {
    ...graph,
    count,
    degree: degrees(graph.edges, count),
    x: Float64Array.from(graph.x),
    y: Float64Array.from(graph.y),
    isPlaced: graph.x.map((place) => !Number.isNaN(place)),
  };
  const isFirst = !state.isPlaced.includes(true);
  state.unit = isFirst ? 1 : unitOf(state);
  sow(state, isFirst);
  push(state, count > 800 ? 200 : 300);
  if (isFirst) {
    lay(state);
    fill(state);
  }
  separate(state);
  return { x: state.x, y: state.y };
}

// How large the drawing is that new nodes come to, as a multiple of what the forces would make.
function unitOf({ edges, x, y, isPlaced }) {
  const placed = edges.filter(([i, j]) => isPlaced[i] && isPlaced[j]);
  const sum = placed.reduce((far, [i, j]) => far + Math.hypot(x[i] - x[j], y[i] - y[j]), 0);
  return Math.max(sum / (placed.length || 1) / LENGTH, 1);
}

function degrees(edges, count) {
  const degree = new Float64Array(count);
  for (const [i, j] of edges) {
    degree[i]++;
    degree[j]++;
  }
  return degree;
}

// First places: around the roots, every node in the sector of the one that leads to it; a new node
// beside one that is drawn.
function sow(state, isFirst) {
  const { count, edges, x, y, isPlaced, unit } = state;
  const beside = Array.from({ length: count }, () => []);
  for (const [i, j] of edges) {
    beside[i].push(j);
    beside[j].push(i);
  }
  const seen = [...isPlaced];
  const queue = isFirst ? [] : [...seen.keys()].filter((i) => seen[i]);
  const start = (i, place) => {
    const far = 40 * Math.sqrt(place);
    x[i] = far * Math.cos(place * GOLDEN);
    y[i] = far * Math.sin(place * GOLDEN);
    seen[i] = true;
    queue.push(i);
  };
  if (isFirst) state.roots.forEach((i, place) => seen[i] || start(i, place));
  for (let at = 0, stray = 0; ; at++) {
    if (at === queue.length) {
      while (stray < count && seen[stray]) stray++;
      if (stray === count) break;
      start(stray, queue.length + 4);
    }
    const from = queue[at];
    const fresh = beside[from].filter((i) => !seen[i]);
    fresh.forEach((i, place) => {
      if (seen[i]) return; // two edges lead there
      const far = (14 + 8 * Math.sqrt(place)) * unit;
      x[i] = x[from] + far * Math.cos((place + from) * GOLDEN);
      y[i] = y[from] + far * Math.sin((place + from) * GOLDEN);
      seen[i] = true;
      queue.push(i);
    });
  }
}

// Nodes push each other away, edges hold their ends together, ever more gently.
function push(state, rounds) {
  const { count, edges, x, y, degree, isPlaced, aspect, unit } = state;
  const [vx, vy] = [new Float64Array(count), new Float64Array(count)];
  const masses = degree.map((number) => 1 + 0.4 * Math.log2(1 + number));
  const tree = new Quadtree(count);
  const wide = count > 400 ? 1.1 : 0.8;
  const cooling = COLD ** (1 / rounds);
  for (let round = 0, heat = 1; round < rounds; round++, heat *= cooling) {
    hold(state, vx, vy, heat);
    tree.build(x, y, masses);
    for (let i = 0; i < count; i++) {
      if (isPlaced[i]) continue; // it stays where it is
      const strength = PUSH * unit * unit * masses[i] * heat;
      tree.visit(x[i], y[i], wide, (dx, dy, square, mass) => {
        const by = (strength * mass) / Math.max(square, 1);
        vx[i] += dx * by;
        vy[i] += dy * by;
      });
      vx[i] -= (x[i] * PULL * heat) / aspect;
      vy[i] -= y[i] * PULL * aspect * heat;
    }
    for (let i = 0; i < count; i++) {
      vx[i] *= isPlaced[i] ? 0 : DRAG;
      vy[i] *= isPlaced[i] ? 0 : DRAG;
      x[i] += vx[i];
      y[i] += vy[i];
    }
  }
}

// An edge is a spring; that of a leaf is strong, those between hubs are weak.
function hold({ edges, degree, x, y, unit }, vx, vy, heat) {
  for (const [i, j] of edges) {
    const [dx, dy] = [x[j] + vx[j] - x[i] - vx[i], y[j] + vy[j] - y[i] - vy[i]];
    const far = Math.hypot(dx, dy) || 1e-6;
    const by = ((far - LENGTH * unit) / far) * (heat / Math.min(degree[i], degree[j]));
    const share = degree[i] / (degree[i] + degree[j]);
    vx[j] -= dx * by * share;
    vy[j] -= dy * by * share;
    vx[i] += dx * by * (1 - share);
    vy[i] += dy * by * (1 - share);
  }
}

// Pushes nodes apart that overlap. Looks at neighbours in a grid only.
function separate({ count, radius, x, y, isPlaced }) {
  const cell = 2 * Math.max(...radius, 1) + APART;
  for (let round = 0; round < 40; round++) {
    const grid = new Map();
    const key = (column, row) => column * 100_003 + row;
    for (let i = 0; i < count; i++) {
      const at = key(Math.floor(x[i] / cell), Math.floor(y[i] / cell));
      grid.has(at) ? grid.get(at).push(i) : grid.set(at, [i]);
    }
    let moved = false;
    for (let i = 0; i < count; i++) {
      const [column, row] = [Math.floor(x[i] / cell), Math.floor(y[i] / cell)];
      for (let c = column - 1; c <= column + 1; c++) {
        for (let r = row - 1; r <= row + 1; r++) {
          for (const j of grid.get(key(c, r)) ?? []) {
            if (j <= i) continue;
            let [dx, dy] = [x[j] - x[i], y[j] - y[i]];
            let far = Math.hypot(dx, dy);
            const missing = radius[i] + radius[j] + APART - far;
            if (missing <= 0.5) continue;
            if (far < 1e-6) [dx, dy, far] = [Math.cos(j * GOLDEN), Math.sin(j * GOLDEN), 1];
            const share = isPlaced[i] === isPlaced[j] ? 0.5 : isPlaced[i] ? 0.1 : 0.9; // of the way
            x[i] -= (dx / far) * missing * share;
            y[i] -= (dy / far) * missing * share;
            x[j] += (dx / far) * missing * (1 - share);
            y[j] += (dy / far) * missing * (1 - share);
            moved = true;
          }
        }
      }
    }
    if (!moved) return;
  }
}

// Scales the whole to the room that its nodes take up with their names.
function fill({ count, radius, x, y }) {
  let [room, square] = [0, 0];
  for (let i = 0; i < count; i++) {
    room += (radius[i] + APART) ** 2;
    square += x[i] ** 2 + y[i] ** 2;
  }
  const loose = LOOSE + LOOSER / Math.sqrt(count);
  const by = Math.sqrt((room * loose * count) / (2 * square)) || 1;
  for (let i = 0; i < count; i++) {
    x[i] *= by;
    y[i] *= by;
  }
}

// Turns the longest side of the whole to that of the window.
function lay({ count, x, y, aspect }) {
  let [xx, xy, yy, meanX, meanY] = [0, 0, 0, 0, 0];
  for (let i = 0; i < count; i++) {
    meanX += x[i] / count;
    meanY += y[i] / count;
  }
  for (let i = 0; i < count; i++) {
    const [dx, dy] = [x[i] - meanX, y[i] - meanY];
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const turn = (aspect < 1 ? Math.PI / 2 : 0) - 0.5 * Math.atan2(2 * xy, xx - yy);
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  for (let i = 0; i < count; i++) {
    const [dx, dy] = [x[i] - meanX, y[i] - meanY];
    x[i] = dx * cos - dy * sin;
    y[i] = dx * sin + dy * cos;
  }
}
