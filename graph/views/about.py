"""What is known of one node: who speaks of it, what it is related to, its properties."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from common.errors import NotFound
from common.plain_words import END, START, without_signs
from documents.models import Chunk
from graph import services
from graph.forms import GraphState
from graph.reading.results import MentionFound, NeighbourPage
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope
from graph.views.shown import Shown, shown
from graph.views.signs import relation_title

MENTIONS = 6
#: So many relations are looked at, and so many of each kind listed.
LOOKED_AT = 200
LISTED = 8
PROPS = 30
#: Relations of the text's own order, which tell the least.
LAST = {"HAS_CHUNK", "NEXT"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that speaks of a node; `words` are those that name it."""

    url: str
    title: str
    before: str
    words: str
    after: str


@dataclass(frozen=True, slots=True)
class Relations:
    """What a node is related to in one way: those listed, and how many there are besides."""

    title: str
    nodes: tuple[Shown, ...]
    count: int
    is_counted: bool

    @property
    def more(self) -> int:
        """How many are not listed."""
        return self.count - len(self.nodes)


def about_node(scope: GraphScope, state: GraphState) -> dict[str, Any]:
    """What `graph/about.html` shows of the node that is looked at; `subject` is None where there
    is none."""
    vertex = services.get_node(scope=scope, id=state.looked_at) if state.looked_at else None
    if vertex is None:
        return {"subject": None}
    page = _neighbours(scope, vertex, state)
    mentions = _mentions(scope, vertex)
    return {
        "subject": shown(vertex, state, degree=page.total if page else 0),
        "read_url": _read_url(vertex),
        "passages": mentions[:MENTIONS],
        "more_passages": len(mentions) > MENTIONS,
        "relations": _relations(page, state) if page else (),
        "props": [
            (name, _words(value)) for name, value in list((vertex.props or {}).items())[:PROPS]
        ],
        "more_props": max(len(vertex.props or {}) - PROPS, 0),
    }


def _neighbours(scope: GraphScope, vertex: Vertex, state: GraphState) -> NeighbourPage | None:
    try:
        return services.neighbors(scope=scope, id=vertex.id, grain=state.grain, limit=LOOKED_AT)
    except NotFound:  # gone since it was looked up
        return None


def _relations(page: NeighbourPage, state: GraphState) -> tuple[Relations, ...]:
    groups: dict[tuple[str, bool], dict[str, Vertex]] = defaultdict(dict)
    for neighbour in page.items:
        groups[neighbour.rel, neighbour.outgoing][neighbour.vertex.id] = neighbour.vertex
    return tuple(
        Relations(
            title=relation_title(rel, outgoing=outgoing),
            nodes=tuple(shown(vertex, state) for vertex in list(group.values())[:LISTED]),
            count=len(group),
            is_counted=not page.next,
        )
        for (rel, outgoing), group in sorted(groups.items(), key=lambda pair: pair[0][0] in LAST)
    )


def _mentions(scope: GraphScope, vertex: Vertex) -> list[Passage]:
    """The passages that speak of it, one more than are shown."""
    if vertex.kind != "node":
        return []
    page = services.mentions_of(scope=scope, id=vertex.id, limit=MENTIONS + 1)
    return [_passage(mention) for mention in page.items]


def _passage(found: MentionFound) -> Passage:
    start, end = (max(place - found.snippet_start, 0) for place in (found.start, found.end))
    text = found.snippet
    marked = without_signs(f"{text[:start]}{START}{text[start:end]}{END}{text[end:]}")
    before, _, rest = marked.partition(START)
    words, _, after = rest.partition(END)
    return Passage(
        url=_url(found.document, chunk=found.passage.pk),
        title=found.document.name,
        before=before,
        words=words,
        after=after,
    )


def _read_url(vertex: Vertex) -> str:
    """Where it can be read: a document, or its page at a passage."""
    if vertex.kind == "document":
        return _url(vertex)
    if vertex.kind == "chunk":
        document = Chunk.objects.filter(pk=vertex.pk).values_list("document", flat=True).first()
        return _url(vertex, document=document, chunk=vertex.pk) if document else ""
    return ""


def _url(vertex: Vertex, *, document: int | None = None, chunk: int | None = None) -> str:
    slug = vertex.id.split(":", 2)[1]  # doc:<slug>:<key>, chunk:<slug>:<key>:<number>
    address = reverse("document", args=[slug, document or vertex.pk])
    return f"{address}?chunk={chunk}#passage" if chunk else address


def _words(value: Any) -> str:
    """A property in one line, as its writer wrote it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if value is not None else "–"
