"""The table and the graph of `bench.engine`, for the terminal and docs/reference/performance.md."""

import re
from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "reference" / "performance.md"
GRAPH = DOCS / "images" / "engine-growth.svg"

Measured = Mapping[str, Any]

ROWS = (
    ("lexical search, p50 / p95 ms", "{lexical_p50:.1f} / {lexical_p95:.1f}"),
    ("vector search, p50 / p95 ms", "{vector_p50:.1f} / {vector_p95:.1f}"),
    ("hybrid search, p50 / p95 ms", "{hybrid_p50:.1f} / {hybrid_p95:.1f}"),
    ("lexical beside writing, p50 / p95 ms", "{lexical_beside_p50:.1f} / {lexical_beside_p95:.1f}"),
    ("hybrid beside writing, p50 / p95 ms", "{hybrid_beside_p50:.1f} / {hybrid_beside_p95:.1f}"),
    ("filter of 0.02 %, p50 / p95 ms", "{tenant_p50:.1f} / {tenant_p95:.1f}"),
    ("filter of 0.02 %, returned · recall@10", "{tenant_hits:.3f} · {tenant_recall:.3f}"),
    ("filter of 2 %, p50 / p95 ms", "{topic_p50:.1f} / {topic_p95:.1f}"),
    ("filter of 2 %, returned · recall@10", "{topic_hits:.3f} · {topic_recall:.3f}"),
    ("filter of 30 %, p50 / p95 ms", "{recent_p50:.1f} / {recent_p95:.1f}"),
    ("filter of 30 %, returned · recall@10", "{recent_hits:.3f} · {recent_recall:.3f}"),
    ("vector recall@10", "{recall:.3f}"),
    ("lexical overlap@10", "{overlap:.3f}"),
    ("hybrid, total · database ms · statements", "{total:.1f} · {database:.1f} · {statements:.1f}"),
    ("hybrid, CPU ms", "{cpu:.1f}"),
    ("1 client, searches/s · p95 ms", "{one_rate:,.0f} · {one_p95:.1f}"),
    ("{clients} clients, searches/s · p95 ms", "{many_rate:,.0f} · {many_p95:.1f}"),
    ("items stored/s", "{items:,.0f}"),
    ("disk, MB", "{megabytes:,.0f}"),
    ("one document committed, p50 ms", "{small:.1f}"),
)


def table(measured: Sequence[Measured]) -> str:
    """Markdown: a row a figure, two columns a size."""
    heads = [f"{each['passages']:,} {name}" for each in measured for name in ("ragsite", "bare")]
    lines = [["", *heads], ["---", *["--:"] * len(heads)]]
    for label, template in ROWS:
        cells = [
            template.format_map(each[name]) for each in measured for name in ("ragsite", "bare")
        ]
        lines.append([label.format_map(measured[0]), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_docs(measured: Sequence[Measured], conditions: str) -> None:
    """Put the table between the marks of the page, and draw the graph anew."""
    block = f"<!-- engine -->\n{conditions}\n\n{table(measured)}\n\n<!-- /engine -->"
    page, count = re.subn(
        r"<!-- engine -->.*<!-- /engine -->", lambda _: block, PAGE.read_text(), flags=re.S
    )
    if not count:
        raise SystemExit(f"{PAGE} has no <!-- engine --> block.")
    PAGE.write_text(page)
    GRAPH.write_text(graph(measured))


# --- the graph ----------------------------------------------------------------------------------

LEFT, RIGHT, TOP, BOTTOM = 64, 560, 40, 300
MODES = ("lexical", "vector", "hybrid")
LIGHT = "--paper:#fff; --ink:#1c2033; --quiet:#555c75; --line:#d5d8e3"
DARK = "--paper:#12141c; --ink:#edeff7; --quiet:#abb3cb; --line:#333849"
SVG = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 340" role="img" aria-labelledby="title"
  font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif">
  <title id="title">p95 of a search in milliseconds by number of passages</title>
  <style>
    :root {{ {LIGHT}; --lexical:#b45309; --vector:#0f766e; --hybrid:#4f46e5; }}
    @media (prefers-color-scheme: dark) {{
      :root {{ {DARK}; --lexical:#fbbf24; --vector:#5eead4; --hybrid:#a5a1ff; }} }}
    text {{ fill: var(--quiet); font-size: 13px; }}
    path, polyline {{ fill: none; stroke: var(--line); }}
    .lexical {{ stroke: var(--lexical); }} .vector {{ stroke: var(--vector); }}
    .hybrid {{ stroke: var(--hybrid); }} .ragsite {{ stroke-width: 2.5; }}
    .bare {{ stroke-width: 1.5; stroke-dasharray: 5 4; }} circle {{ fill: var(--paper); }}
  </style>
  <rect width="760" height="340" rx="8" fill="var(--paper)"/>
  <text x="{LEFT}" y="24" font-weight="600">p95 of a search in ms, by number of passages</text>
  %s
</svg>
"""


def graph(measured: Sequence[Measured]) -> str:
    """SVG of p95 by number of passages, both axes logarithmic: a line a mode, dashed for bare."""
    sizes = [each["passages"] for each in measured]
    curves = [
        (f"{name} {mode}", [each[name][f"{mode}_p95"] for each in measured])
        for name in ("ragsite", "bare")
        for mode in MODES
    ]
    values = [value for _, curve in curves for value in curve]
    steps = [step * 10.0**power for power in range(-2, 6) for step in (1, 2, 5)]
    least = max(step for step in steps if step <= min(values))
    most = min(step for step in steps if step > max(values))

    def x(size: float) -> float:
        widest = log10(max(sizes) / min(sizes)) or 1
        return round(LEFT + (RIGHT - LEFT) * log10(size / min(sizes)) / widest, 1)

    def y(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * log10(value / least) / log10(most / least), 1)

    parts = []
    for step in [step for step in steps if least <= step <= most]:
        label = f'<text x="{LEFT - 8}" y="{y(step) + 4}" text-anchor="end">{step:g}</text>'
        parts.append(f'<path d="M{LEFT} {y(step)}H{RIGHT}"/>{label}')
    for size in sizes:
        label = f'<text x="{x(size)}" y="{BOTTOM + 22}" text-anchor="middle">{size:,}</text>'
        parts.append(f'<path d="M{x(size)} {TOP}V{BOTTOM}"/>{label}')
    for place, (name, curve) in enumerate(curves):
        points = [(x(size), y(value)) for size, value in zip(sizes, curve, strict=True)]
        line = " ".join(f"{across},{down}" for across, down in points)
        mode = name.split()[1]
        dots = "".join(f'<circle class="{mode}" cx="{a}" cy="{b}" r="3.5"/>' for a, b in points)
        parts.append(f'<polyline class="{name}" points="{line}"/>{dots}')
        at = TOP + 12 + 24 * place
        parts.append(f'<path class="{name}" d="M{RIGHT + 36} {at}h30"/>')
        parts.append(f'<text x="{RIGHT + 74}" y="{at + 4}">{name}</text>')
    return SVG % "\n  ".join(parts)
