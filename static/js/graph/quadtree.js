// Sums of many small pushes: a quadtree of masses (Barnes and Hut, 1986) in flat arrays.

const DEEPEST = 24;

export class Quadtree {
  constructor(count) {
    const cells = 4 * count + 64;
    this.child = new Int32Array(4 * cells);
    this.mass = new Float64Array(cells);
    this.x = new Float64Array(cells);
    this.y = new Float64Array(cells);
    this.width = new Float64Array(cells);
    this.stack = new Int32Array(4 * DEEPEST + 8);
  }

  // Cells hold sums while the tree grows: x and y are turned into centres of mass at the end.
  build(xs, ys, masses) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < xs.length; i++) {
      left = Math.min(left, xs[i]);
      right = Math.max(right, xs[i]);
      top = Math.min(top, ys[i]);
      bottom = Math.max(bottom, ys[i]);
    }
    this.used = 0;
    const width = Math.max(right - left, bottom - top, 1e-6);
    const root = this.#cell(width);
    for (let i = 0; i < xs.length; i++) this.#insert(root, left, top, width, xs[i], ys[i], masses[i]);
    for (let c = 0; c < this.used; c++) {
      this.x[c] /= this.mass[c];
      this.y[c] /= this.mass[c];
    }
  }

  #cell(width) {
    const cell = this.used++;
    this.child.fill(-1, 4 * cell, 4 * cell + 4);
    this.mass[cell] = this.x[cell] = this.y[cell] = 0;
    this.width[cell] = width;
    return cell;
  }

  #add(cell, x, y, mass) {
    this.mass[cell] += mass;
    this.x[cell] += x * mass;
    this.y[cell] += y * mass;
  }

  #isLeaf(cell) {
    const { child } = this;
    const at = 4 * cell;
    return child[at] < 0 && child[at + 1] < 0 && child[at + 2] < 0 && child[at + 3] < 0;
  }

  #insert(cell, left, top, width, x, y, mass) {
    for (let depth = 0; ; depth++) {
      const before = this.mass[cell];
      if (before === 0 || depth >= DEEPEST || this.used >= this.mass.length - 8) {
        this.#add(cell, x, y, mass);
        return;
      }
      const half = width / 2;
      if (this.#isLeaf(cell)) {
        const [otherX, otherY] = [this.x[cell] / before, this.y[cell] / before];
        this.#add(this.#quarter(cell, left, top, half, otherX, otherY), otherX, otherY, before);
      }
      this.#add(cell, x, y, mass);
      const next = this.#quarter(cell, left, top, half, x, y);
      if (x >= left + half) left += half;
      if (y >= top + half) top += half;
      [cell, width] = [next, half];
    }
  }

  #quarter(cell, left, top, half, x, y) {
    const at = 4 * cell + (x >= left + half ? 1 : 0) + (y >= top + half ? 2 : 0);
    if (this.child[at] < 0) this.child[at] = this.#cell(half);
    return this.child[at];
  }

  // Calls back with the offset and mass of everything that pushes at (x, y): what is near by
  // itself, what is far as one.
  visit(x, y, wide, push) {
    const { child, mass, stack } = this;
    let depth = 0;
    stack[depth++] = 0;
    while (depth) {
      const cell = stack[--depth];
      const [dx, dy] = [x - this.x[cell], y - this.y[cell]];
      const square = dx * dx + dy * dy;
      const width = this.width[cell];
      let isLeaf = true;
      if (width * width > wide * wide * square) {
        for (let at = 4 * cell; at < 4 * cell + 4; at++) {
          if (child[at] < 0) continue;
          isLeaf = false;
          stack[depth++] = child[at];
        }
      }
      if (isLeaf && square > 1e-12) push(dx, dy, square, mass[cell]);
    }
  }
}
