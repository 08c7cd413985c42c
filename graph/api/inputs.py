"""Request parameters and bodies of the graph API."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import ListParameters, WorkspaceParameters
from common.options.drf import OptionsSerializer
from common.serializers import StrictSerializer, TextField
from graph.inputs import MAX_LABEL_CHARACTERS, MAX_LABELS, EdgeInput, NodeInput
from graph.node_ids import MAX_REL_CHARACTERS
from graph.options import NeighborOptions, PathOptions, SubgraphOptions, TraversalOptions
from graph.reading.steps import MAX_PAGE
from graph.reading.vertices import KINDS
from graph.reading.vertices import MAX_ID_CHARACTERS as MAX_ASKED_ID

MAX_IDS = 100
#: A place between two ids, in base 64.
MAX_CURSOR_CHARACTERS = 10_000


def id_field(meaning: str, **options: Any) -> TextField:
    """An id of a node, document or passage."""
    return TextField(max_length=MAX_ASKED_ID, help_text=meaning, **options)


def cursor_field() -> TextField:
    return TextField(
        required=False,
        max_length=MAX_CURSOR_CHARACTERS,
        help_text="Where the page begins: see `next`.",
    )


def labels_field(meaning: str) -> serializers.ListField:
    return serializers.ListField(
        child=TextField(max_length=MAX_LABEL_CHARACTERS),
        required=False,
        max_length=MAX_LABELS,
        help_text=meaning,
    )


def strict_field(**options: Any) -> serializers.BooleanField:
    """Whether missing ends of edges are errors."""
    return serializers.BooleanField(
        **options or {"default": True},
        help_text="400 if an end of an edge does not exist. False: it is created, without a"
        " name. Default: true.",
    )


def replace_props_field(**options: Any) -> serializers.BooleanField:
    """Whether properties are replaced instead of merged."""
    return serializers.BooleanField(
        **options or {"default": False},
        help_text="Replace all properties instead of adding to them. Default: false.",
    )


class NodeParameters(ListParameters):
    """Query string of nodes: by id, by name, or a page."""

    id = id_field("The node, document or passage that is called so, and no list.", required=False)
    q = TextField(
        required=False,
        max_length=MAX_ASKED_ID,
        help_text="Beginning of a name or id, or something like it: the best `page_size` of them.",
    )
    label = labels_field("Nodes with one of these labels; may be repeated.")  # type: ignore[assignment]
    kind = serializers.MultipleChoiceField(
        choices=KINDS,
        required=False,
        help_text="With `q`: what is looked for. Default: nodes and documents.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        others = sorted({"q", "label", "kind", "cursor", "page_size"} & attrs.keys())
        if "id" in attrs and others:
            raise serializers.ValidationError(
                dict.fromkeys(others, "With `id` one node is read. Leave this out, or the id.")
            )
        if "q" in attrs and "cursor" in attrs:
            problem = "What is found by `q` has no further pages. Ask for more by `page_size`."
            raise serializers.ValidationError({"cursor": problem})
        if "kind" in attrs and "q" not in attrs:
            problem = "This goes with `q`. Lists hold nodes; documents have a list of their own."
            raise serializers.ValidationError({"kind": problem})
        return attrs


def former_preview_field() -> serializers.BooleanField:
    return serializers.BooleanField(required=False, help_text="Former name of `dry_run`.")


@extend_schema_serializer(deprecate_fields=["preview"])
class DeletionParameters(WorkspaceParameters):
    """Query string of a node's deletion."""

    id = id_field("Id of the node.")
    dry_run = serializers.BooleanField(
        default=False, help_text="Only report what would be deleted with it; delete nothing."
    )
    preview = former_preview_field()
    former_names = {"preview": "dry_run"}


class GraphNodeInputSerializer(OptionsSerializer):
    """A node to create or change."""

    options = NodeInput
    text_field = TextField

    props = serializers.DictField(required=False)
    replace_props = replace_props_field()


@extend_schema_serializer(deprecate_fields=["preview"])
class GraphIdsSerializer(StrictSerializer):
    """Ids of the nodes to delete."""

    ids = serializers.ListField(
        child=TextField(max_length=MAX_ASKED_ID), min_length=1, max_length=MAX_PAGE
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only report what would be deleted with them; delete nothing."
    )
    preview = former_preview_field()
    former_names = {"preview": "dry_run"}


class EdgeParameters(ListParameters):
    """Query string of the list of edges."""

    cursor = cursor_field()
    source = id_field("That begin at this node.", required=False)  # type: ignore[assignment]
    rel = TextField(required=False, max_length=MAX_REL_CHARACTERS, help_text="Of this relation.")
    target = id_field("That lead to this node.", required=False)


class EdgeNameParameters(WorkspaceParameters):
    """Query string that names one edge."""

    source = id_field("Where it begins.")  # type: ignore[assignment]
    rel = TextField(max_length=MAX_REL_CHARACTERS, help_text="The relation.")
    target = id_field("Where it leads.")


class GraphEdgeInputSerializer(OptionsSerializer):
    """An edge to create or change."""

    options = EdgeInput
    text_field = TextField

    props = serializers.DictField(required=False)
    strict = strict_field()
    replace_props = replace_props_field()


class NeighborParameters(OptionsSerializer, WorkspaceParameters):
    """Query string of a node's neighbors."""

    options = NeighborOptions

    id = id_field("A node, document or passage.")
    cursor = cursor_field()


class MentionParameters(WorkspaceParameters):
    """Query string of a node's mentions."""

    id = id_field("A node.")
    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_IDS, default=20, help_text="Passages a page."
    )
    cursor = cursor_field()


class GraphTraversalInputSerializer(OptionsSerializer):
    """Start, depth and filters of a traversal."""

    options = TraversalOptions

    start = id_field("A node, document or passage.")


class GraphPathInputSerializer(OptionsSerializer):
    """Ends, depth and filters of a path."""

    options = PathOptions

    source = id_field("A node, document or passage.")  # type: ignore[assignment]
    target = id_field("Another one.")


class GraphSubgraphInputSerializer(OptionsSerializer):
    """Start nodes, distance and filters of a subgraph."""

    options = SubgraphOptions
    skip = frozenset({"direction"})

    id = serializers.ListField(
        child=TextField(max_length=MAX_ASKED_ID),
        min_length=1,
        max_length=MAX_IDS,
        help_text="Nodes, documents or passages; may be repeated.",
    )
    label = labels_field("Besides `id` only nodes with one of these labels; may be repeated.")  # type: ignore[assignment]
    format = serializers.ChoiceField(
        choices=["json", "graphml"],
        default="json",
        help_text="`json` is what cytoscape.js reads; `graphml` a file.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs["id"]) > attrs["limit"]:
            problem = f"There are {len(attrs['id'])} ids. Raise the limit, or send fewer."
            raise serializers.ValidationError({"limit": problem})
        return attrs


class TraversalParameters(GraphTraversalInputSerializer, WorkspaceParameters):
    """Query string of a traversal."""


class PathParameters(GraphPathInputSerializer, WorkspaceParameters):
    """Query string of a path."""


class SubgraphParameters(GraphSubgraphInputSerializer, WorkspaceParameters):
    """Query string of a subgraph."""


class BulkParameters(WorkspaceParameters):
    """Query string of a bulk write; a JSON body may override it."""

    strict = strict_field()
    replace_props = replace_props_field()


class GraphNodeItemSerializer(GraphNodeInputSerializer):
    """A node in a bulk write."""

    replace_props = None  # type: ignore[assignment]  # is said once for all


class GraphEdgeItemSerializer(GraphEdgeInputSerializer):
    """An edge in a bulk write."""

    strict = None  # type: ignore[assignment]
    replace_props = None  # type: ignore[assignment]


class ItemsField(serializers.ListField):
    """A long list, whose items are validated while they are written."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        return data


class GraphBulkInputSerializer(StrictSerializer):
    """Nodes and edges that are written together or not at all."""

    nodes = ItemsField(child=GraphNodeItemSerializer(), required=False, help_text="Written first.")
    edges = ItemsField(
        child=GraphEdgeItemSerializer(), required=False, help_text="Of two for one the last counts."
    )
    strict = strict_field(required=False)
    replace_props = replace_props_field(required=False)


@extend_schema_serializer(deprecate_fields=["preview"])
class GraphMergeInputSerializer(StrictSerializer):
    """The node to keep, and those merged into it."""

    keep = id_field("Id of the node that stays.")
    others = serializers.ListField(
        child=TextField(max_length=MAX_ASKED_ID),
        min_length=1,
        max_length=MAX_IDS,
        help_text="Ids of the nodes that go into it.",
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only report what would change; change nothing."
    )
    preview = former_preview_field()
    former_names = {"preview": "dry_run"}


class ExportParameters(WorkspaceParameters):
    """Query string of an export."""

    format = serializers.ChoiceField(
        choices=["graphml", "jsonl"],
        default="graphml",
        help_text="`graphml`: everything that you may see, without passages. `jsonl`: what"
        " was given, in the format of `/graph/bulk/`.",
    )
    extracted = serializers.BooleanField(
        required=False,
        help_text="With `jsonl`: also what was found in documents. Where it is imported, it"
        " counts as given, and is no longer deleted with them.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "extracted" in attrs and attrs["format"] != "jsonl":
            problem = "This goes with `format=jsonl`. GraphML has everything anyway."
            raise serializers.ValidationError({"extracted": problem})
        return attrs


class ExtractionParameters(WorkspaceParameters):
    """Query string that names a collection."""

    collection = serializers.SlugField(max_length=63, help_text="Its slug.")


class GraphReextractionSerializer(StrictSerializer):
    """Which collection to extract again, and how much of it."""

    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")
    only_stale = serializers.BooleanField(
        default=False,
        help_text="Only documents that were never read, or were read with other settings.",
    )
