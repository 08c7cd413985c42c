"""What a page shows of a node: its words, its sign, and where its links lead."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from graph.forms import GraphState
from graph.reading.vertices import Vertex
from graph.views.signs import label_words, tone


@dataclass(frozen=True, slots=True)
class Shown:
    """A node as it stands in a list of the page that `state` tells of. `degree` counts its
    links, None where nobody counted."""

    id: str
    name: str
    kind: str
    labels: Sequence[str]
    degree: int | None
    state: GraphState

    @property
    def label(self) -> str:
        """What kind of thing it is, in words."""
        return label_words(self.labels, self.kind)

    @property
    def links(self) -> str:
        """How many links it has, in words; empty where nobody counted them."""
        return "" if self.degree is None else f"{self.degree:,}"

    @property
    def filter_label(self) -> str:
        """The label by which a filter finds it."""
        return self.labels[0] if self.labels else ""

    @property
    def tone(self) -> int:
        """Its colour, by number."""
        return tone(self.labels, self.kind)

    @property
    def is_root(self) -> bool:
        """Whether the drawing starts here."""
        return self.id in self.state.ids

    @property
    def url(self) -> str:
        """A drawing that starts here."""
        return GraphState(ids=(self.id,)).url()

    @property
    def start_url(self) -> str:
        """The same, as far and as filtered as the present one."""
        return self.state.url(ids=(self.id,), opened=(), hidden=(), at="")

    @property
    def look_url(self) -> str:
        """This drawing, with this node looked at."""
        return self.state.url(at=self.id, page=self.state.page)

    @property
    def add_url(self) -> str:
        """This drawing, with this node and what is around it besides."""
        return self.state.with_one("ids", self.id, at=self.id)

    @property
    def expand_url(self) -> str:
        """This drawing, with what is linked to this node besides."""
        return self.state.with_one("opened", self.id, at=self.id)

    @property
    def is_expanded(self) -> bool:
        """Whether what is linked to it was asked for."""
        return self.id in self.state.starts

    @property
    def hide_url(self) -> str:
        """This drawing without it."""
        return self.state.with_one("hidden", self.id, at="")

    @property
    def search_url(self) -> str:
        """A search for its name."""
        return f"{reverse('search')}?{urlencode({'q': self.name[:200]})}"


def shown(vertex: Vertex, state: GraphState, *, degree: int | None = None) -> Shown:
    """`vertex` on the page that `state` tells of."""
    name = vertex.name.strip() or vertex.id
    return Shown(vertex.id, name, vertex.kind, vertex.labels, degree, state)
