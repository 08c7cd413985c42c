"""What requests to walk through the graph may say."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.serializers import StrictSerializer, TextField
from graph.api.fields import (
    MAX_CURSOR,
    MAX_IDS,
    depth_field,
    direction_field,
    grain_field,
    id_field,
    labels_field,
    rels_field,
)
from graph.reading.resolving import MAX_ID_CHARACTERS as MAX_ASKED_ID
from graph.services.reading import (
    MAX_HOPS,
    MAX_PAGE,
    MAX_REACHED,
    MAX_VERTICES,
)


class NeighborParameters(WorkspaceParameters):
    """Of what, by which relations."""

    id = id_field("A node, document or passage.")
    rel = rels_field()
    direction = direction_field()
    grain = grain_field()
    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_PAGE, default=100, help_text="Neighbours a page."
    )
    cursor = TextField(
        required=False, max_length=MAX_CURSOR, help_text="Where the page begins: see `next`."
    )


class MentionParameters(WorkspaceParameters):
    """Of what."""

    id = id_field("A node.")
    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_IDS, default=20, help_text="Passages a page."
    )
    cursor = TextField(
        required=False, max_length=MAX_CURSOR, help_text="Where the page begins: see `next`."
    )


@extend_schema_serializer(component_name="GraphTraversalInput")
class TraversalBody(StrictSerializer):
    """From where, and how far."""

    start = id_field("A node, document or passage.")
    max_depth = depth_field(2)
    rel = rels_field()
    direction = direction_field()
    grain = grain_field()
    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_REACHED, default=1000, help_text="Nodes, at most."
    )


class TraversalParameters(TraversalBody, WorkspaceParameters):
    """The same in an address."""


@extend_schema_serializer(component_name="GraphPathInput")
class PathBody(StrictSerializer):
    """From where to where."""

    source = id_field("A node, document or passage.")  # type: ignore[assignment]
    target = id_field("Another one.")
    max_depth = depth_field(6)
    rel = rels_field()
    direction = direction_field()
    grain = grain_field()


class PathParameters(PathBody, WorkspaceParameters):
    """The same in an address."""


@extend_schema_serializer(component_name="GraphSubgraphInput")
class SubgraphBody(StrictSerializer):
    """Around what, and how far."""

    id = serializers.ListField(
        child=TextField(max_length=MAX_ASKED_ID),
        min_length=1,
        max_length=MAX_IDS,
        help_text="Nodes, documents or passages; may be repeated.",
    )
    hops = serializers.IntegerField(
        min_value=0, max_value=MAX_HOPS, default=1, help_text="Steps from any of them, at most."
    )
    rel = rels_field()
    label = labels_field("Besides `id` only nodes with one of these labels; may be repeated.")  # type: ignore[assignment]
    grain = grain_field()
    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_VERTICES, default=200, help_text="Nodes, at most."
    )
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


class SubgraphParameters(SubgraphBody, WorkspaceParameters):
    """The same in an address."""
