"""Serializers of the graph API's answers."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.utils.urls import replace_query_param

from common.serializers import ResultSerializer
from documents.models import Collection
from graph.extraction.mentions import KINDS as KINDS_OF_MENTION
from graph.querysets import Origin
from graph.reading.results import (
    Connected,
    GraphStatistics,
    Link,
    MentionFound,
    Neighbour,
    Reached,
    Truncated,
)
from graph.reading.vertices import DERIVED, KINDS, Vertex
from graph.services.edits import Deletion
from graph.services.extraction import ExtractionState
from graph.services.merge import MergeResult
from graph.services.upsert import EdgeChange, NodeChange

#: Whose word it is.
ORIGINS = [*Origin.values, DERIVED]


class NextField(serializers.CharField):
    """A cursor, shown as the address of the next page."""

    def __init__(self) -> None:
        super().__init__(allow_null=True, help_text="Address of the next page, or null.")

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        if not value:
            return None
        here = self.context["request"].build_absolute_uri()
        return str(replace_query_param(here, "cursor", value))


def origin_field() -> serializers.ChoiceField:
    return serializers.ChoiceField(
        choices=ORIGINS,
        help_text="`given` by a person or program; `extracted` from passages, and deleted"
        " with them; `derived` from the documents themselves.",
    )


def names_field(meaning: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=meaning)


class GraphNodeSerializer(serializers.Serializer[Vertex]):
    """A node, a document or a passage."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    name = serializers.CharField(help_text="Its name for people.")
    labels = names_field("What it is.")
    origin = origin_field()
    document = serializers.SerializerMethodField(
        help_text="The id in `/documents/ID/` for a document, else null."
    )
    chunk = serializers.SerializerMethodField(
        help_text="The `chunk_id` of searches for a passage, else null."
    )
    props = serializers.DictField(
        allow_null=True, help_text="Null in lists: read one node to know them."
    )

    def get_document(self, vertex: Vertex) -> int | None:
        return vertex.pk if vertex.kind == "document" else None

    def get_chunk(self, vertex: Vertex) -> int | None:
        return vertex.pk if vertex.kind == "chunk" else None


class GraphNodePageSerializer(serializers.Serializer[Any]):
    """One page of a list of nodes."""

    next = serializers.CharField(allow_null=True, help_text="Address of the next page, or null.")
    previous = serializers.CharField(allow_null=True)
    results = GraphNodeSerializer(many=True)


class GraphLinkSerializer(ResultSerializer):
    """A relation between two nodes, by their ids."""

    result = Link
    skip = frozenset({"props"})

    origin = origin_field()


class GraphEdgeSerializer(ResultSerializer):
    """An edge that was given or extracted."""

    result = Link

    origin = origin_field()
    props = serializers.DictField(
        allow_null=True, help_text="Null in lists: ask for one edge by all of its names."
    )


class GraphEdgePageSerializer(serializers.Serializer[Any]):
    """One page of a list of edges."""

    next = NextField()
    results = GraphEdgeSerializer(many=True)


class GraphNodeChangeSerializer(ResultSerializer):
    """The node after a write, and what changed."""

    result = NodeChange

    node = GraphNodeSerializer()


class GraphEdgeChangeSerializer(ResultSerializer):
    """The edge after a write, and what changed."""

    result = EdgeChange

    edge = GraphEdgeSerializer()


@extend_schema_serializer(deprecate_fields=["preview"])
class GraphDeletionSerializer(ResultSerializer):
    """What was deleted, or would be."""

    result = Deletion

    dry_run = serializers.BooleanField(help_text="True: nothing was deleted.")
    preview = serializers.BooleanField(source="dry_run", help_text="Former name of `dry_run`.")


class GraphTruncatedSerializer(ResultSerializer):
    """What was left out of an answer."""

    result = Truncated


class GraphNeighborSerializer(serializers.Serializer[Neighbour]):
    """A node related to the one asked about."""

    node = GraphNodeSerializer(source="vertex")
    rel = serializers.CharField()
    direction = serializers.SerializerMethodField(
        help_text="`out`: the relation leads from the requested node to this one."
    )
    weight = serializers.FloatField()
    origin = origin_field()
    props = serializers.DictField(
        allow_null=True,
        help_text="Of the edge. Null behind the first 8 MB of a page: ask for the edge.",
    )

    def get_direction(self, neighbour: Neighbour) -> str:
        return "out" if neighbour.outgoing else "in"


class GraphNeighborsSerializer(serializers.Serializer[Any]):
    """Neighbors of a node, in natural order: `…:2` before `…:10`."""

    node = GraphNodeSerializer(source="vertex", help_text="The requested node.")
    total = serializers.IntegerField(help_text="On all pages.")
    next = NextField()
    results = GraphNeighborSerializer(many=True, source="items")
    truncated = GraphTruncatedSerializer()


class GraphReachedSerializer(serializers.Serializer[Reached]):
    """A reached node, and the last step to it."""

    node = GraphNodeSerializer(source="vertex")
    depth = serializers.IntegerField(help_text="Steps from the start, which has 0.")
    parent = serializers.SerializerMethodField(  # type: ignore[assignment]
        help_text="Id of the node that the last step comes from; null of the start."
    )
    rel = serializers.SerializerMethodField(help_text="Of the last step; null of the start.")
    direction = serializers.SerializerMethodField(
        help_text="`out`: the last step goes along the relation; null of the start."
    )

    def get_parent(self, reached: Reached) -> str | None:
        return reached.parent

    def get_rel(self, reached: Reached) -> str | None:
        return reached.rel

    def get_direction(self, reached: Reached) -> str | None:
        return ("out" if reached.outgoing else "in") if reached.depth else None


class GraphTraversalSerializer(serializers.Serializer[Any]):
    """Reached nodes, nearest first, including the start."""

    reached = GraphReachedSerializer(many=True, source="items")
    truncated = GraphTruncatedSerializer()


class GraphPathSerializer(serializers.Serializer[Any]):
    """A shortest path, if there is one."""

    found = serializers.BooleanField(
        help_text="False: there is none of at most `max_depth` steps, unless `truncated` says that"
        " the search was given up."
    )
    length = serializers.IntegerField(allow_null=True, help_text="Steps; null without a way.")
    nodes = GraphNodeSerializer(many=True, source="vertices", help_text="From source to target.")
    edges = GraphLinkSerializer(
        many=True,
        source="links",
        help_text="One fewer. Each has its own direction; the path may follow it backwards.",
    )
    max_depth = serializers.IntegerField()
    truncated = GraphTruncatedSerializer()


class GraphMentionSerializer(ResultSerializer):
    """A passage that mentions the node."""

    result = MentionFound

    passage = GraphNodeSerializer()
    document = GraphNodeSerializer()
    kind = serializers.ChoiceField(
        choices=KINDS_OF_MENTION,
        help_text="`self`: the document's own name or address; where else it stands.",
    )


class GraphMentionsSerializer(serializers.Serializer[Any]):
    """Passages that mention a node, in order of documents."""

    node = GraphNodeSerializer(source="vertex", help_text="The requested node.")
    next = NextField()
    results = GraphMentionSerializer(many=True, source="items")


class GraphElementSerializer(serializers.Serializer[Any]):
    """A node or an edge in the format of cytoscape.js."""

    data = serializers.DictField()  # type: ignore[assignment]


class GraphElementsSerializer(serializers.Serializer[Any]):
    """Elements in the format of cytoscape.js."""

    nodes = GraphElementSerializer(many=True)
    edges = GraphElementSerializer(many=True)


class GraphSubgraphSerializer(serializers.Serializer[Any]):
    """A subgraph in the format of cytoscape.js."""

    elements = GraphElementsSerializer()
    missing = names_field("Those of the ids that are not there, or not for you.")
    truncated = GraphTruncatedSerializer()


class GraphCountsSerializer(serializers.Serializer[Any]):
    """Counts of written nodes or edges."""

    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Items that were unchanged.")


class GraphBulkAnswerSerializer(serializers.Serializer[Any]):
    """Counts of a bulk write, and aliases in use."""

    nodes = GraphCountsSerializer()
    edges = GraphCountsSerializer()
    stubs = serializers.IntegerField(help_text="Nodes that were created for ends of edges.")
    taken = names_field("Names by which texts mean another node already, in their normal form.")


@extend_schema_serializer(deprecate_fields=["preview"])
class GraphMergeAnswerSerializer(ResultSerializer):
    """What the merge moved, or would move."""

    result = MergeResult

    dry_run = serializers.BooleanField(help_text="True: nothing was changed.")
    preview = serializers.BooleanField(source="dry_run", help_text="Former name of `dry_run`.")
    keep = serializers.CharField(help_text="Id of the node that stays.")


class GraphConnectedSerializer(ResultSerializer):
    """A node with its number of relations."""

    result = Connected

    node = GraphNodeSerializer(source="vertex")


class GraphStatisticsSerializer(ResultSerializer):
    """Size of the graph, as the user sees it."""

    result = GraphStatistics


class GraphExtractionSerializer(ResultSerializer):
    """Progress of extraction in a collection."""

    result = ExtractionState

    collection = serializers.CharField()
    graph = serializers.ChoiceField(choices=Collection.Graph.choices, help_text="How.")


class GraphReextractionAnswerSerializer(serializers.Serializer[Any]):
    """Number of queued documents, and the progress."""

    queued = serializers.IntegerField(help_text="Documents that will be read again.")
    state = GraphExtractionSerializer()
