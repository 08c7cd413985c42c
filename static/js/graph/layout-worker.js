// Lays out beside the page, so that it never freezes.

import { layout } from "./layout.js";

addEventListener("message", ({ data: { turn, graph } }) => postMessage({ turn, ...layout(graph) }));
