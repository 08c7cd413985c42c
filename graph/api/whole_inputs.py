"""What requests about much of the graph at once may say."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.serializers import StrictSerializer, TextField
from graph.api.fields import MAX_IDS, id_field, replace_props_field, strict_field
from graph.api.inputs import EdgeBody, NodeBody
from graph.reading.resolving import MAX_ID_CHARACTERS as MAX_ASKED_ID


class BulkParameters(WorkspaceParameters):
    """How lines are written; JSON says it in the body."""

    strict = strict_field()
    replace_props = replace_props_field()


@extend_schema_serializer(component_name="GraphNodeItem")
class NodeItem(NodeBody):
    """One of many nodes."""

    replace_props = None  # type: ignore[assignment]  # is said once for all


@extend_schema_serializer(component_name="GraphEdgeItem")
class EdgeItem(EdgeBody):
    """One of many edges."""

    strict = None  # type: ignore[assignment]
    replace_props = None  # type: ignore[assignment]


class ItemsField(serializers.ListField):
    """A long list, whose items are checked when they are written."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        return data


@extend_schema_serializer(component_name="GraphBulkInput")
class BulkBody(StrictSerializer):
    """Nodes and edges that are written together or not at all."""

    nodes = ItemsField(child=NodeItem(), required=False, help_text="Written first.")
    edges = ItemsField(
        child=EdgeItem(), required=False, help_text="Of two for one the last counts."
    )
    strict = strict_field(required=False)
    replace_props = replace_props_field(required=False)


@extend_schema_serializer(component_name="GraphMergeInput")
class MergeBody(StrictSerializer):
    """Nodes that are one thing."""

    keep = id_field("Id of the node that stays.")
    others = serializers.ListField(
        child=TextField(max_length=MAX_ASKED_ID),
        min_length=1,
        max_length=MAX_IDS,
        help_text="Ids of the nodes that go into it.",
    )
    preview = serializers.BooleanField(
        default=False, help_text="Only say what would become of them, and change nothing."
    )


class ExportParameters(WorkspaceParameters):
    """As what."""

    format = serializers.ChoiceField(
        choices=["graphml", "jsonl"],
        default="graphml",
        help_text="`graphml`: all that you may see, without passages. `jsonl`: what was given, as"
        " `/graph/bulk/` reads it.",
    )
    extracted = serializers.BooleanField(
        required=False,
        help_text="With `jsonl`: also what documents tell. Where it is read, it counts as given,"
        " and no longer goes with them.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "extracted" in attrs and attrs["format"] != "jsonl":
            problem = "This goes with `format=jsonl`. GraphML has everything anyway."
            raise serializers.ValidationError({"extracted": problem})
        return attrs


class ExtractionParameters(WorkspaceParameters):
    """Of which collection."""

    collection = serializers.SlugField(max_length=63, help_text="Its slug.")


@extend_schema_serializer(component_name="GraphReextraction")
class ReextractionBody(StrictSerializer):
    """What is to be read again."""

    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")
    only_stale = serializers.BooleanField(
        default=False,
        help_text="Only documents that were never read, or in another way than they would be now.",
    )
