"""Finding nodes and documents by what they are called, while somebody types.

Names are looked up in an index of trigrams, aliases and ids in that of their beginnings.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from graph.reading.resolving import resolve
from graph.reading.statements import piece, rows
from graph.reading.vertices import DOCUMENT_LABEL, Kind, Ref, Vertex, load
from graph.scopes import Parameters, Sight

#: So many that fit are looked at whether they may be seen, the shortest first.
MOST_CANDIDATES = 2_000
#: Fewer letters stand within too many names, and are like too many: names must begin with them.
FEWEST_LETTERS = 3
MAX_CHARACTERS = 200
#: Behind every text that begins with another.
_LAST = "\U0010ffff"


def find(
    seen: Sight,
    text: str,
    *,
    form: str,
    labels: Sequence[str] = (),
    kinds: Sequence[Kind] = ("node", "document"),
    limit: int = 10,
) -> tuple[Vertex, ...]:
    """What may be meant by `text`, the likeliest first. `form` is what `text` is as an alias.

    An id itself finds what is called so, whatever its kind.
    """
    asked = text.replace("\0", " ").encode(errors="replace").decode().strip()[:MAX_CHARACTERS]
    if not asked:
        return ()
    named = [vertex for vertex in resolve(seen, [asked]).values() if _admits(vertex, labels)]
    given = seen.parameters | _parameters(asked, form, labels, limit)
    found = _ranked(_run(seen, "find", kinds, labels, given))
    if len(found) < limit and len(asked) >= FEWEST_LETTERS:
        found += _ranked(_run(seen, "find_like", kinds, labels, given))
    order = dict.fromkeys([*(vertex.ref for vertex in named), *found])
    vertices = load(seen, order)
    return tuple(vertices[ref] for ref in order if ref in vertices)[:limit]


def _admits(vertex: Vertex, labels: Sequence[str]) -> bool:
    return not labels or not set(labels).isdisjoint(vertex.labels)


def _run(
    seen: Sight, how: str, kinds: Sequence[Kind], labels: Sequence[str], given: Parameters
) -> list[tuple[Any, ...]]:
    labelled = "node.labels && %(labels)s::varchar[]" if labels else "TRUE"
    statements = []
    if "node" in kinds:
        statements.append(piece(f"{how}_nodes").format(node=seen.node("node"), labels=labelled))
    if "document" in kinds and (not labels or DOCUMENT_LABEL in labels):
        statements.append(piece(f"{how}_documents").format(document=seen.listed("document")))
    return rows("\nUNION ALL\n".join(statements), given) if statements else []


def _ranked(found: Iterable[tuple[Any, ...]]) -> list[Ref]:
    ranked = sorted(
        (
            (rank, -nearness, len(name), name, Ref(kind, pk))
            for kind, pk, rank, nearness, name in found
        )
    )
    return list(dict.fromkeys(ref for *_, ref in ranked))


def _parameters(text: str, form: str, labels: Sequence[str], limit: int) -> Parameters:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    prefix = f"{escaped}%"
    return {
        "text": text,
        "form": form,
        "prefix": prefix,
        "pattern": prefix if len(text) < FEWEST_LETTERS else f"%{prefix}",
        "last": _LAST,
        "labels": list(labels),
        "candidates": MOST_CANDIDATES,
        "limit": limit,
    }
