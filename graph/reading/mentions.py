"""Passages that speak of a node."""

from graph.models import Mention
from graph.reading import cursors
from graph.reading.results import MentionFound, MentionPage
from graph.reading.statements import named_rows, piece
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Sight

#: So much of the text stands before and behind a mention.
AROUND = 120


def mentions_of_node(seen: Sight, vertex: Vertex, *, limit: int, cursor: str = "") -> MentionPage:
    """A page of them, in the order of documents and within them. Of what is no node there are
    none. Raises InvalidInput for a cursor that is none."""
    document, ordinal = cursors.read(cursor, int, int) or (0, -1)
    if vertex.kind != "node":
        return MentionPage(vertex, ())
    statement = piece("mentions").format(chunk=seen.passage("chunk"))
    place = {"node": vertex.pk, "document": document, "ordinal": ordinal, "limit": limit + 1}
    found = named_rows(statement, seen.parameters | place | {"around": AROUND})
    shown = found[:limit]
    vertices = load(
        seen,
        {Ref("chunk", row["chunk_id"]) for row in shown}
        | {Ref("document", row["document_id"]) for row in shown},
    )
    items = tuple(
        MentionFound(
            passage=passage,
            document=container,
            kind=Mention.Kind(row["kind"]).name.lower(),
            count=row["count"],
            start=row["start"],
            end=row["end"],
            snippet=row["snippet"],
            snippet_start=row["snippet_start"],
        )
        for row in shown
        if (passage := vertices.get(Ref("chunk", row["chunk_id"])))
        and (container := vertices.get(Ref("document", row["document_id"])))
    )
    last = (shown[-1]["document_id"], shown[-1]["ordinal"]) if len(found) > limit else ()
    return MentionPage(vertex, items, cursors.written(last) if last else "")
