"""View models of the graph pages: labels, colours, nodes with their links, the
drawing, details of a node.
"""

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.humanize.templatetags.humanize import intcomma
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop

from common.errors import NotFound
from common.text import HIGHLIGHT_END, HIGHLIGHT_START, strip_markdown
from documents.models import Chunk
from graph import services
from graph.forms import GraphState
from graph.reading.export import cytoscape_elements
from graph.reading.results import Link, MentionFound, Neighbour, Page, Subgraph
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope

#: Label, without regard to case → tone. Other labels get one of the last by their letters.
LABEL_TONES = {
    "document": 1,
    "passage": 2,
    "chunk": 2,
    "name": 6,
    "person": 5,
    "place": 3,
    "location": 3,
    "organization": 7,
    "date": 4,
    "code": 8,
    "ref": 3,
    "email": 5,
}
OTHER_TONES = (3, 4, 5, 6, 7, 8)
KIND_LABELS = {
    "document": gettext_noop("Document"),
    "chunk": gettext_noop("Passage"),
    "node": gettext_noop("Thing"),
}
RELATION_LABELS = {
    "HAS_CHUNK": gettext_noop("has the passage"),
    "MENTIONS": "mentions",
    "NEXT": gettext_noop("is followed by"),
    "REFERS_TO": gettext_noop("refers to"),
    "VERSION_OF": gettext_noop("is a version of"),
}
#: Likewise, seen from the other end.
INCOMING_LABELS = {
    "HAS_CHUNK": gettext_noop("is a passage of"),
    "MENTIONS": gettext_noop("is mentioned by"),
    "NEXT": gettext_noop("follows on"),
    "REFERS_TO": gettext_noop("referenced by"),
    "VERSION_OF": gettext_noop("has the version"),
}


def tone(labels: Sequence[str], kind: str) -> int:
    """Colour number of a label; always the same for the same label."""
    if kind != "node":
        return LABEL_TONES["document" if kind == "document" else "passage"]
    if not labels:
        return 0
    name = labels[0].casefold()
    return LABEL_TONES.get(name) or OTHER_TONES[zlib.crc32(name.encode()) % len(OTHER_TONES)]


def relation_words(rel: str) -> str:
    """A relation in words: `WORKED_WITH` → “worked with”."""
    if rel in RELATION_LABELS:
        return gettext(RELATION_LABELS[rel])
    return rel.replace("_", " ").casefold()


def relation_title(rel: str, *, outgoing: bool) -> str:
    """Heading of a list of nodes related in this way."""
    if outgoing:
        words = relation_words(rel)
    elif rel in INCOMING_LABELS:
        words = gettext(INCOMING_LABELS[rel])
    else:
        words = f"← {relation_words(rel)}"
    return words[:1].upper() + words[1:]


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node in a list of the page with this `state`. `degree` counts its links, None
    if not counted.
    """

    id: str
    name: str
    kind: str
    labels: Sequence[str]
    degree: int | None
    state: GraphState

    @property
    def label(self) -> str:
        """Its first label, or else its kind, in words."""
        words = self.labels[0].replace("_", " ") if self.labels and self.kind == "node" else ""
        return words[:1].upper() + words[1:] or gettext(KIND_LABELS[self.kind])

    @property
    def links(self) -> str:
        """Number of links, formatted; empty if not counted."""
        return "" if self.degree is None else intcomma(self.degree)

    @property
    def filter_label(self) -> str:
        """The label by which it is filtered."""
        return self.labels[0] if self.labels else ""

    @property
    def tone(self) -> int:
        return tone(self.labels, self.kind)

    @property
    def is_root(self) -> bool:
        """Whether the drawing starts here."""
        return self.id in self.state.ids

    @property
    def url(self) -> str:
        """URL of a drawing that starts here."""
        return GraphState(ids=(self.id,)).url()

    @property
    def start_url(self) -> str:
        """URL of a drawing that starts here, with the current filters."""
        return self.state.url(ids=(self.id,), opened=(), hidden=(), at="")

    @property
    def look_url(self) -> str:
        """URL of this drawing with this node selected."""
        return self.state.url(at=self.id, page=self.state.page)

    @property
    def add_url(self) -> str:
        """URL of this drawing with this node as another start."""
        return self.state.with_one("ids", self.id, at=self.id)

    @property
    def expand_url(self) -> str:
        """URL of this drawing with this node expanded."""
        return self.state.with_one("opened", self.id, at=self.id)

    @property
    def is_expanded(self) -> bool:
        """Whether its neighbours are drawn."""
        return self.id in self.state.starts

    @property
    def hide_url(self) -> str:
        return self.state.with_one("hidden", self.id, at="")

    @property
    def search_url(self) -> str:
        """URL of a search for its name."""
        return f"{reverse('search')}?{urlencode({'q': self.name[:200]})}"


def node_view(vertex: Vertex, state: GraphState, *, degree: int | None = None) -> NodeView:
    """View of `vertex` on the page with this `state`."""
    name = vertex.name.strip() or vertex.id
    return NodeView(vertex.id, name, vertex.kind, vertex.labels, degree, state)


#: Values of a filter that are offered, the most frequent first.
MAX_FACET_VALUES = 30
#: Factor of requested vertices when documents are drawn, since passages among them are dropped.
SUBGRAPH_FACTOR = 2
#: Most start nodes whose undrawn links are counted.
MAX_COUNTED_STARTS = 5


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes, best connected first, and links between them; degrees count these links.

    `is_cut`: there are more links. `missing` are unknown ids.
    """

    nodes: tuple[NodeView, ...]
    links: tuple[Link, ...]
    is_cut: bool = False
    missing: tuple[str, ...] = ()

    @property
    def elements(self) -> dict[str, list[dict[str, Any]]]:
        """Elements in the format of cytoscape.js."""
        nodes = [
            {
                "id": node.id,
                "name": node.name,
                "kind": node.kind,
                "labels": list(node.labels),
                "degree": node.degree,
                "tone": node.tone,
                "root": node.is_root,
            }
            for node in self.nodes
        ]
        edges = [
            {
                "id": f"{link.source}\n{link.rel}\n{link.target}",
                "source": link.source,
                "target": link.target,
                "rel": link.rel,
                "says": relation_words(link.rel),
                "weight": link.weight,
            }
            for link in self.links
        ]
        return cytoscape_elements(nodes, edges)


def draw(scope: GraphScope, state: GraphState) -> Drawing:
    """The drawing for `state`. Filters also apply to intermediate nodes."""
    return _make_drawing(_subgraph(scope, state, rels=state.rels, labels=state.labels), state)


def count_undrawn_links(scope: GraphScope, state: GraphState, found: Drawing) -> int | None:
    """Number of links of expanded nodes that are not drawn; None if too expensive to count."""
    if state.hops > 1 or state.labels or len(state.starts) > MAX_COUNTED_STARTS:
        return None
    starts = [id for id in state.starts if id not in found.missing]
    pages = (
        services.neighbors(scope=scope, id=id, rel=state.rels, grain=state.grain, limit=1)
        for id in starts
    )
    drawn_ends = sum((link.source in starts) + (link.target in starts) for link in found.links)
    return max(sum(page.total for page in pages) - drawn_ends, 0) or None


def drawing_facets(scope: GraphScope, state: GraphState, found: Drawing) -> list[dict[str, Any]]:
    """Kinds and relations without the filter, with their counts. The `url` of a choice applies
    it, or removes it where it is `selected`.
    """
    whole = _make_drawing(_subgraph(scope, state), state) if state.is_filtered else found
    signs = {node.filter_label: node for node in whole.nodes}
    labels = Counter(node.filter_label for node in whole.nodes)
    rels = Counter(link.rel for link in whole.links)
    facets = []
    for name, title, field, counts in (
        ("label", gettext("Kinds"), "labels", labels),
        ("rel", gettext("Links"), "rels", rels),
    ):
        chosen: Sequence[str] = getattr(state, field)
        # The most frequent values, and all chosen ones.
        often = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_FACET_VALUES]
        choices = []
        for value, count in (dict(often) | {each: counts[each] for each in chosen}).items():
            sign = signs.get(value) if name == "label" else None
            shown = value if name == "label" else relation_words(value)
            choices.append(
                {
                    "label": sign.label if sign else shown,
                    "url": state.toggled(field, value),
                    "count": count,
                    "selected": value in chosen,
                    "tone": sign.tone if sign else 0,
                    "kind": sign.kind if sign else "node",
                }
            )
        if choices:
            facets.append({"name": name, "title": title, "choices": choices})
    return facets


def _subgraph(
    scope: GraphScope, state: GraphState, *, rels: Sequence[str] = (), labels: Sequence[str] = ()
) -> Subgraph:
    try:
        return services.subgraph(
            scope=scope,
            ids=state.starts,
            hops=state.hops,
            cap=state.size if state.grain == "chunk" else state.size * SUBGRAPH_FACTOR,
            rels=rels,
            labels=labels,
            grain=state.grain,
        )
    except NotFound:
        return Subgraph(vertices=(), links=(), degrees={}, missing=state.starts)


def _make_drawing(found: Subgraph, state: GraphState) -> Drawing:
    # With documents drawn, only requested passages are.
    wanted = [
        vertex
        for vertex in found.vertices
        if vertex.id not in state.hidden
        and (state.grain == "chunk" or vertex.kind != "chunk" or vertex.id in state.starts)
    ]
    vertices = wanted[: state.size]
    there = {vertex.id for vertex in vertices}
    links = [link for link in found.links if link.source in there and link.target in there]
    seen = Counter(end for link in links for end in {link.source, link.target})
    nodes = [node_view(vertex, state, degree=seen[vertex.id]) for vertex in vertices]
    nodes.sort(key=lambda node: (-seen[node.id], node.name.casefold(), node.id))
    is_cut = bool(found.truncated) or len(wanted) > len(vertices)
    return Drawing(tuple(nodes), tuple(links), is_cut, found.missing)


MAX_MENTIONS = 6
#: Neighbours read, and nodes listed per relation.
MAX_NEIGHBOURS = 200
MAX_LISTED = 8
MAX_PROPS = 30
#: Structural relations, listed last.
LAST_RELATIONS = {"HAS_CHUNK", "NEXT"}


def node_detail(scope: GraphScope, state: GraphState) -> dict[str, Any]:
    """Context of `graph/about.html` for the selected node; `subject` is None if there is none."""
    vertex = services.get_node(scope=scope, id=state.looked_at) if state.looked_at else None
    if vertex is None:
        return {"subject": None}
    page: Page[Neighbour] | None = None
    with suppress(NotFound):  # gone since it was looked up
        page = services.neighbors(
            scope=scope, id=vertex.id, grain=state.grain, limit=MAX_NEIGHBOURS
        )
    mentions: Sequence[MentionFound] = ()
    if vertex.kind == "node":
        mentions = services.mentions_of(scope=scope, id=vertex.id, limit=MAX_MENTIONS + 1).items
    # Of a document, or of the passage within it.
    read_url = _document_url(vertex) if vertex.kind == "document" else ""
    if vertex.kind == "chunk":
        document = Chunk.objects.filter(pk=vertex.pk).values_list("document", flat=True).first()
        if document:
            read_url = _document_url(vertex, document=document, chunk=vertex.pk)
    return {
        "subject": node_view(vertex, state, degree=page.total if page else 0),
        "read_url": read_url,
        "passages": [_mention_view(mention) for mention in mentions[:MAX_MENTIONS]],
        "more_passages": len(mentions) > MAX_MENTIONS,
        "relations": _relation_groups(page, state) if page else (),
        "props": [
            (name, "–" if value is None else _property_text(value))
            for name, value in list((vertex.props or {}).items())[:MAX_PROPS]
        ],
        "more_props": max(len(vertex.props or {}) - MAX_PROPS, 0),
    }


def _relation_groups(page: Page[Neighbour], state: GraphState) -> list[dict[str, Any]]:
    groups: dict[tuple[str, bool], dict[str, Vertex]] = defaultdict(dict)
    for neighbour in page.items:
        groups[neighbour.rel, neighbour.outgoing][neighbour.vertex.id] = neighbour.vertex
    return [
        {
            "title": relation_title(rel, outgoing=outgoing),
            "nodes": [node_view(vertex, state) for vertex in list(group.values())[:MAX_LISTED]],
            "count": len(group),
            "is_counted": not page.next,
            "more": max(len(group) - MAX_LISTED, 0),
        }
        for (rel, outgoing), group in sorted(
            groups.items(), key=lambda pair: pair[0][0] in LAST_RELATIONS
        )
    ]


def _mention_view(found: MentionFound) -> dict[str, str]:
    """A passage that mentions a node; `words` is the mention itself."""
    start, end = (max(place - found.snippet_start, 0) for place in (found.start, found.end))
    text = found.snippet
    marked = strip_markdown(
        f"{text[:start]}{HIGHLIGHT_START}{text[start:end]}{HIGHLIGHT_END}{text[end:]}"
    )
    before, _, rest = marked.partition(HIGHLIGHT_START)
    words, _, after = rest.partition(HIGHLIGHT_END)
    return {
        "url": _document_url(found.document, chunk=found.passage.pk),
        "title": found.document.name,
        "before": before,
        "words": words,
        "after": after,
    }


def _document_url(vertex: Vertex, *, document: int | None = None, chunk: int | None = None) -> str:
    slug = vertex.id.split(":", 2)[1]  # doc:<slug>:<key>, chunk:<slug>:<key>:<number>
    address = reverse("document", args=[slug, document or vertex.pk])
    return f"{address}?chunk={chunk}#passage" if chunk else address


def _property_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
