"""State of the explorer, all of it in its address (`GraphState`), and the forms of nodes and
edges."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from common.options import option_fields
from common.options.forms import form_field
from common.text import parse_integer
from graph import services
from graph.inputs import EdgeInput, NodeInput
from graph.reading.results import Link
from graph.reading.steps import Grain
from graph.reading.vertices import Kind, Vertex
from graph.scopes import GraphScope

# A web server refuses addresses of more than some 4,000 characters.
MAX_IDS = 25
MAX_HIDDEN = 50
#: How much is drawn at once: a person chooses one of these.
SIZES = (200, 500, 2000)
MAX_PAGE = 100
#: Fields that hold several values: their parameter, and how many values.
LISTS = {
    "ids": ("id", MAX_IDS),
    "opened": ("open", MAX_IDS),
    "hidden": ("hide", MAX_HIDDEN),
    "rels": ("rel", MAX_IDS),
    "labels": ("label", MAX_IDS),
}


@dataclass(frozen=True, slots=True)
class GraphState:
    """State of the explorer, all of it in its query string.

    `ids` are start nodes, `opened` expanded ones, `at` the selected one; `size` is the maximum
    of drawn nodes, `grain` whether documents or passages are drawn, `page` of the list counts
    from 1.
    """

    ids: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    rels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    hops: int = 1
    size: int = SIZES[0]
    grain: Grain = "document"
    at: str = ""
    page: int = 1

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Invalid values become defaults: old links keep working."""
        size = parse_integer(params.get("size", "")) or 0
        return cls(
            **{field: _distinct(params, name, most) for field, (name, most) in LISTS.items()},
            hops=2 if params.get("hops") == "2" else 1,
            at=(_distinct(params, "at", 1) or ("",))[-1],
            size=size if size in SIZES else SIZES[0],
            grain="chunk" if params.get("grain") == "chunk" else "document",
            page=min(parse_integer(params.get("page", "")) or 1, MAX_PAGE),
        )

    @property
    def looked_at(self) -> str:
        """Id of the node whose details are shown."""
        return self.at or (self.ids[0] if self.ids else "")

    @property
    def starts(self) -> tuple[str, ...]:
        """Ids whose neighbours are drawn."""
        return tuple(dict.fromkeys((*self.ids, *self.opened)))

    @property
    def is_filtered(self) -> bool:
        """Whether relations or labels are filtered."""
        return bool(self.rels or self.labels)

    def query_string(self) -> str:
        """The state as a query string, without defaults."""
        pairs: list[tuple[str, Any]] = [
            (name, value) for field, (name, _) in LISTS.items() for value in getattr(self, field)
        ]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in LISTS and value != field.default:
                pairs.append((field.name, value))
        return urlencode(pairs)

    def url(self, view: str = "graph", /, **changes: Any) -> str:
        """URL of this state with `changes`; page 1 unless the page is named."""
        state = replace(self, **{"page": 1, **changes})
        return f"{reverse(view)}?{state.query_string()}".removesuffix("?")

    def toggled(self, name: str, value: str) -> str:
        """URL with `value` added to, or removed from, `rels` or `labels`."""
        values: tuple[str, ...] = getattr(self, name)
        without = tuple(other for other in values if other != value)
        return self.url(**{name: without if value in values else (*values, value)})

    def with_one(self, name: str, id: str, **changes: Any) -> str:
        """URL with `id` added to `ids`, `opened` or `hidden`."""
        values: tuple[str, ...] = getattr(self, name)
        return self.url(**{name: values if id in values else (*values, id), **changes})


def _distinct(params: QueryDict, name: str, most: int) -> tuple[str, ...]:
    """Distinct non-empty values of a parameter, without NUL."""
    clean = (value.replace("\0", "").strip() for value in params.getlist(name))
    return tuple(dict.fromkeys(value for value in clean if value))[:most]


_NODE, _EDGE = option_fields(NodeInput), option_fields(EdgeInput)
#: Nodes that are named where a name means several.
MAX_NAMED = 5


class ItemForm(forms.Form):
    """A form filled with something as it is."""

    def given(self) -> dict[str, Any]:
        """What differs from how it was; of a valid form."""
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if value != self.initial.get(name)
        }


class NodeForm(ItemForm):
    """What is known of a node."""

    name = form_field(_NODE["name"])
    labels = form_field(_NODE["labels"])
    aliases = form_field(_NODE["aliases"])
    props = form_field(_NODE["props"])

    @classmethod
    def of(cls, scope: GraphScope, vertex: Vertex, posted: QueryDict | None = None) -> Self:
        """The form filled with the node as it is."""
        known = {
            "name": "" if vertex.name == vertex.id else vertex.name,
            "labels": list(vertex.labels),
            "aliases": [alias.form for alias in services.names_of(scope=scope, id=vertex.id)],
            "props": dict(vertex.props or {}),
        }
        return cls(posted, initial=known)


class NewNodeForm(NodeForm):
    """A node with an id that is not in use."""

    id = form_field(_NODE["id"])
    field_order = ("id",)


class VertexField(forms.CharField):
    """The id of a node, document or passage, chosen by name while typing; a name that means one
    alone does, too. Gives the vertex. `kinds` are found by name.
    """

    scope: GraphScope

    def __init__(self, kinds: Sequence[Kind] = ("node", "document"), **given: Any) -> None:
        super().__init__(**given)
        self.kinds = kinds

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        attributes = {"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}
        return {**super().widget_attrs(widget), **attributes, "data-finder": "", "data-fills": ""}

    def clean(self, value: Any) -> Vertex | None:
        text = super().clean(value)
        if not text:
            return None
        if (vertex := services.get_node(scope=self.scope, id=text)) is not None:
            return vertex
        found = services.find_nodes(scope=self.scope, text=text, kinds=self.kinds)
        same = [each for each in found if each.name.casefold() == text.casefold()]
        if len(same) == 1:
            return same[0]
        if not found:
            raise forms.ValidationError(gettext("No node has this name or id."))
        ids = ", ".join(each.id for each in (same or found)[:MAX_NAMED])
        raise forms.ValidationError(
            gettext("Enter the id of one of these nodes: {ids}.").format(ids=ids)
        )


class ScopedForm(forms.Form):
    """A form in which nodes of `scope` are chosen."""

    def __init__(self, scope: GraphScope, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if isinstance(field, VertexField):
                field.scope = scope
                field.widget.attrs["data-finder"] = reverse("graph_find")


def _vertex_field(name: str) -> VertexField:
    described = form_field(_EDGE[name])
    return VertexField(label=described.label, help_text=described.help_text)


class EdgeForm(ItemForm):
    """Weight and properties of an edge."""

    weight = form_field(_EDGE["weight"])
    props = form_field(_EDGE["props"])

    @classmethod
    def of(cls, edge: Link, posted: QueryDict | None = None) -> Self:
        """The form filled with the edge as it is."""
        return cls(posted, initial={"weight": edge.weight, "props": dict(edge.props or {})})

    def clean_weight(self) -> float | None:
        text: str = self.cleaned_data["weight"]
        try:
            return float(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(_EDGE["weight"].number_error()) from error


class NewEdgeForm(ScopedForm, EdgeForm):
    """An edge between two nodes."""

    source = _vertex_field("source")
    rel = form_field(_EDGE["rel"])
    target = _vertex_field("target")
    field_order = ("source", "rel", "target")


class MergeForm(ScopedForm):
    """Another node that means the same."""

    other = VertexField(
        ["node"],
        label=gettext_lazy("Another node for the same thing"),
        required=False,
        help_text=gettext_lazy("Its name or id."),
    )

    def clean_other(self) -> Vertex | None:
        other: Vertex | None = self.cleaned_data["other"]
        if other is not None and other.kind != "node":
            raise forms.ValidationError(gettext("Documents and passages cannot be merged."))
        return other
