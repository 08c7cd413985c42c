"""Finding nodes and documents by what they are called, while somebody types.

Aliases and ids are looked up by their beginnings; names and titles, and what is like them, in an
index of trigrams.
"""

from collections.abc import Sequence

from django.db import transaction

from common.replicas import read_alias, reads_from_replica
from common.rls import bypass_rls
from graph.extraction.normalized_names import normalize_name
from graph.reading.steps import MAX_FOUND, check_choice, check_range, checked_names
from graph.reading.vertices import (
    DOCUMENT_LABEL,
    KINDS,
    Kind,
    Ref,
    Vertex,
    fetch_rows,
    load_sql,
    load_vertices,
    resolve,
)
from graph.scopes import AccessFilter, GraphScope, Parameters

#: Most candidates ranked per kind of name.
MAX_CANDIDATES = 2_000
#: Shorter texts are matched as prefixes only: too many names contain them.
MIN_CHARACTERS = 3
MAX_CHARACTERS = 200
#: Threshold of pg_trgm's word similarity.
MIN_WORD_SIMILARITY = 0.45
_SET_THRESHOLD_SQL = "SELECT set_config('pg_trgm.word_similarity_threshold', %(likeness)s, TRUE)"
#: Behind every text that begins with another.
_LAST_CHARACTER = "\U0010ffff"


@reads_from_replica
def find_nodes(
    *,
    scope: GraphScope,
    text: str,
    labels: Sequence[str] = (),
    kinds: Sequence[Kind] = ("node", "document"),
    limit: int = 10,
) -> tuple[Vertex, ...]:
    """Vertices whose name or id begins with or resembles `text`: exact matches first, then
    prefixes, then similar ones. With `labels`, only those with one of them.

    An exact id finds its vertex of any kind. Raises InvalidInput.
    """
    check_range(limit, MAX_FOUND, field="limit")
    check_choice(kinds, KINDS, field="kinds")
    labels = checked_names(labels, field="labels")
    seen = AccessFilter(scope)
    asked = text.replace("\0", " ").encode(errors="replace").decode().strip()[:MAX_CHARACTERS]
    if not asked:
        return ()
    named = [
        vertex.ref
        for vertex in resolve(seen, [asked]).values()
        if not labels or not set(labels).isdisjoint(vertex.labels)
    ]
    given = seen.parameters | _parameters(asked, normalize_name(text), labels, limit)
    found = _search(seen, "find", kinds, labels, given)
    if not found and len(asked) >= MIN_CHARACTERS:
        with transaction.atomic(using=read_alias()):
            fetch_rows(_SET_THRESHOLD_SQL, {"likeness": f"{MIN_WORD_SIMILARITY}"})
            found = _search(seen, "find_like", kinds, labels, given)
    order = dict.fromkeys([*named, *found])
    vertices = load_vertices(seen, order)
    return tuple(vertices[ref] for ref in order if ref in vertices)[:limit]


def _search(
    seen: AccessFilter, how: str, kinds: Sequence[Kind], labels: Sequence[str], given: Parameters
) -> list[Ref]:
    """Candidates of the kinds by the statements named `how`, best first."""
    labelled = "node.labels && %(labels)s::varchar[]" if labels else "TRUE"
    statements = []
    if "node" in kinds:
        statements.append(load_sql(f"{how}_nodes").format(node=seen.node("node"), labels=labelled))
    if "document" in kinds and (not labels or DOCUMENT_LABEL in labels):
        statements.append(load_sql(f"{how}_documents").format(document=seen.listed("document")))
    if not statements:
        return []
    # They say themselves whose they look at, and give ids: what is shown is loaded within the
    # fence, under which no index of trigrams would be asked (docs/decisions/0045).
    with bypass_rls():
        found = fetch_rows("\nUNION ALL\n".join(statements), given)
    ranked = sorted(
        (rank, -nearness, len(name), name, Ref(kind, pk))
        for kind, pk, rank, nearness, name in found
    )
    return list(dict.fromkeys(ref for *_, ref in ranked))


def _parameters(text: str, form: str, labels: Sequence[str], limit: int) -> Parameters:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    prefix = f"{escaped}%"
    return {
        "text": text,
        "form": form,
        "prefix": prefix,
        "pattern": prefix if len(text) < MIN_CHARACTERS else f"%{prefix}",
        "is_long": len(text) >= MIN_CHARACTERS,
        "last": _LAST_CHARACTER,
        "labels": list(labels),
        "candidates": MAX_CANDIDATES,
        "limit": limit,
    }
