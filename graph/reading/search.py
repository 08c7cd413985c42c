"""Finding nodes and documents by what they are called, while somebody types.

Aliases and ids are looked up by their beginnings; names and titles, and what is like them, in an
index of trigrams.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

from common.fence import unfenced
from common.replicas import read_alias
from graph.reading.resolving import resolve
from graph.reading.statements import piece, rows
from graph.reading.vertices import DOCUMENT_LABEL, Kind, Ref, Vertex, load
from graph.scopes import Parameters, Sight

#: So many that fit are ranked, of those found by each of their kinds of names.
MOST_CANDIDATES = 2_000
#: Fewer letters stand within too many names, and are like too many: they must be their beginning.
FEWEST_LETTERS = 3
MAX_CHARACTERS = 200
#: Words are alike that have so many of their trigrams in common.
LIKENESS = 0.45
_LIKE = "SELECT set_config('pg_trgm.word_similarity_threshold', %(likeness)s, TRUE)"
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
    if not found and len(asked) >= FEWEST_LETTERS:
        with transaction.atomic(using=read_alias()):
            rows(_LIKE, {"likeness": f"{LIKENESS}"})
            found = _ranked(_run(seen, "find_like", kinds, labels, given))
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
    if not statements:
        return []
    # They say themselves whose they look at, and give ids: what is shown is loaded within the
    # fence, under which no index of trigrams would be asked (docs/decisions/0045).
    with unfenced():
        return rows("\nUNION ALL\n".join(statements), given)


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
        "is_long": len(text) >= FEWEST_LETTERS,
        "last": _LAST,
        "labels": list(labels),
        "candidates": MOST_CANDIDATES,
        "limit": limit,
    }
