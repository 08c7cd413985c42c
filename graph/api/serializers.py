"""What the API says of nodes and edges."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from graph.models import Origin
from graph.reading.results import Link
from graph.reading.vertices import DERIVED, KINDS, Vertex

#: Whose word it is.
ORIGINS = [*Origin.values, DERIVED]

ORIGIN = (
    "`given` by a person or program; `extracted` from passages, and gone with them; `derived`: it"
    " stands for what the documents are."
)


def names(meaning: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=meaning)


@extend_schema_serializer(component_name="GraphNode")
class NodeSerializer(serializers.Serializer[Vertex]):
    """A node, a document or a passage."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(help_text="As people read it.")
    labels = names("What it is.")
    origin = serializers.ChoiceField(choices=ORIGINS, help_text=ORIGIN)
    document = serializers.SerializerMethodField(
        help_text="Of a document its id in `/documents/ID/`, else null."
    )
    chunk = serializers.SerializerMethodField(
        help_text="Of a passage the `chunk_id` that searches call it by, else null."
    )
    props = serializers.DictField(
        allow_null=True, help_text="Null in lists: read one node to know them."
    )

    def get_document(self, vertex: Vertex) -> int | None:
        return vertex.pk if vertex.kind == "document" else None

    def get_chunk(self, vertex: Vertex) -> int | None:
        return vertex.pk if vertex.kind == "chunk" else None


@extend_schema_serializer(component_name="GraphNodePage")
class NodePageSerializer(serializers.Serializer[Any]):
    """A page of nodes."""

    next = serializers.CharField(allow_null=True, help_text="Address of the next page, or null.")
    previous = serializers.CharField(allow_null=True)
    results = NodeSerializer(many=True)


@extend_schema_serializer(component_name="GraphLink")
class LinkSerializer(serializers.Serializer[Link]):
    """A relation between two nodes, by their ids."""

    source = serializers.CharField()  # type: ignore[assignment]
    rel = serializers.CharField()
    target = serializers.CharField()
    weight = serializers.FloatField()
    origin = serializers.ChoiceField(choices=ORIGINS, help_text=ORIGIN)


@extend_schema_serializer(component_name="GraphEdge")
class EdgeSerializer(LinkSerializer):
    """An edge that somebody gave, or that passages tell of."""

    props = serializers.DictField(
        allow_null=True, help_text="Null in lists: ask for one edge by all of its names."
    )


@extend_schema_serializer(component_name="GraphEdgePage")
class EdgePageSerializer(serializers.Serializer[Any]):
    """A page of edges."""

    next = serializers.CharField(allow_null=True, help_text="Address of the next page, or null.")
    results = EdgeSerializer(many=True)


@extend_schema_serializer(component_name="GraphNodeChange")
class NodeChangeSerializer(serializers.Serializer[Any]):
    """What became of a node."""

    node = NodeSerializer()
    created = serializers.BooleanField()
    changed = serializers.BooleanField(help_text="False where it was there just so.")
    taken = names("Names by which texts mean another node already, in their normal form.")


@extend_schema_serializer(component_name="GraphEdgeChange")
class EdgeChangeSerializer(serializers.Serializer[Any]):
    """What became of an edge."""

    edge = EdgeSerializer()
    created = serializers.BooleanField()
    changed = serializers.BooleanField(help_text="False where it was there just so.")
    stubs = serializers.IntegerField(help_text="Nodes that were made for its ends.")


@extend_schema_serializer(component_name="GraphDeletion")
class DeletionSerializer(serializers.Serializer[Any]):
    """What went, or would go."""

    preview = serializers.BooleanField(help_text="True: nothing was deleted.")
    nodes = serializers.IntegerField(help_text="Of those that were named.")
    edges = serializers.IntegerField(help_text="That hang on them.")
    mentions = serializers.IntegerField(help_text="Passages that speak of them.")
    aliases = serializers.IntegerField(help_text="Names by which texts mean them.")
    stubs = serializers.IntegerField(
        help_text="Nodes that were only made because one of these edges hung on them."
    )
