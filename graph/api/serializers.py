"""Serializers of the graph API's answers."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.utils.urls import replace_query_param

from documents.models import Collection
from graph.extraction.mentions import KINDS as KINDS_OF_MENTION
from graph.querysets import Origin
from graph.reading.results import Link, Neighbour, Reached
from graph.reading.vertices import DERIVED, KINDS, Vertex

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


class GraphLinkSerializer(serializers.Serializer[Link]):
    """A relation between two nodes, by their ids."""

    source = serializers.CharField()  # type: ignore[assignment]
    rel = serializers.CharField()
    target = serializers.CharField()
    weight = serializers.FloatField()
    origin = origin_field()


class GraphEdgeSerializer(GraphLinkSerializer):
    """An edge that was given or extracted."""

    props = serializers.DictField(
        allow_null=True, help_text="Null in lists: ask for one edge by all of its names."
    )


class GraphEdgePageSerializer(serializers.Serializer[Any]):
    """One page of a list of edges."""

    next = NextField()
    results = GraphEdgeSerializer(many=True)


class GraphNodeChangeSerializer(serializers.Serializer[Any]):
    """The node after a write, and what changed."""

    node = GraphNodeSerializer()
    created = serializers.BooleanField()
    changed = serializers.BooleanField(help_text="False if it existed unchanged.")
    taken = names_field("Names by which texts mean another node already, in their normal form.")


class GraphEdgeChangeSerializer(serializers.Serializer[Any]):
    """The edge after a write, and what changed."""

    edge = GraphEdgeSerializer()
    created = serializers.BooleanField()
    changed = serializers.BooleanField(help_text="False if it existed unchanged.")
    stubs = serializers.IntegerField(help_text="Nodes that were created for its ends.")


@extend_schema_serializer(deprecate_fields=["preview"])
class GraphDeletionSerializer(serializers.Serializer[Any]):
    """What was deleted, or would be."""

    dry_run = serializers.BooleanField(help_text="True: nothing was deleted.")
    preview = serializers.BooleanField(source="dry_run", help_text="Former name of `dry_run`.")
    nodes = serializers.IntegerField(help_text="Of the requested nodes.")
    edges = serializers.IntegerField(help_text="Edges of these nodes.")
    mentions = serializers.IntegerField(help_text="Mentions of these nodes.")
    aliases = serializers.IntegerField(help_text="Aliases of these nodes.")
    stubs = serializers.IntegerField(
        help_text="Nodes that were created only for one of these edges."
    )


class GraphTruncatedSerializer(serializers.Serializer[Any]):
    """What was left out of an answer."""

    limit = serializers.BooleanField(help_text="There is more than was asked for.")
    hubs = names_field(
        "Ids of nodes with so many neighbors that only those of the largest weight were looked at."
    )
    work = serializers.BooleanField(
        help_text="The search was stopped because there was too much to examine."
    )


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


class GraphMentionSerializer(serializers.Serializer[Any]):
    """A passage that mentions the node."""

    passage = GraphNodeSerializer()
    document = GraphNodeSerializer()
    kind = serializers.ChoiceField(
        choices=KINDS_OF_MENTION,
        help_text="`self`: the document's own name or address; where else it stands.",
    )
    count = serializers.IntegerField(help_text="How often.")
    start = serializers.IntegerField(help_text="Offset in the passage of the first one.")
    end = serializers.IntegerField(
        help_text="0 like `start` where only the title or a heading says it."
    )
    snippet = serializers.CharField(help_text="The text around it.")
    snippet_start = serializers.IntegerField(help_text="Offset of the snippet in the passage.")


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
class GraphMergeAnswerSerializer(serializers.Serializer[Any]):
    """What the merge moved, or would move."""

    dry_run = serializers.BooleanField(help_text="True: nothing was changed.")
    preview = serializers.BooleanField(source="dry_run", help_text="Former name of `dry_run`.")
    keep = serializers.CharField(help_text="Id of the node that stays.")
    nodes = serializers.IntegerField(help_text="How many are merged into it.")
    edges = serializers.IntegerField(help_text="That are moved to it.")
    edges_joined = serializers.IntegerField(help_text="Of these: that become one with another.")
    edges_dropped = serializers.IntegerField(
        help_text="Deleted, because they lead from one of these nodes to another."
    )
    mentions = serializers.IntegerField(help_text="Mentions that are moved to it.")
    aliases = serializers.IntegerField(help_text="Aliases that are moved to it.")


class GraphConnectedSerializer(serializers.Serializer[Any]):
    """A node with its number of relations."""

    node = GraphNodeSerializer(source="vertex")
    degree = serializers.IntegerField(help_text="How many.")


class GraphStatisticsSerializer(serializers.Serializer[Any]):
    """Size of the graph, as the user sees it."""

    nodes = serializers.IntegerField(help_text="Besides documents and passages.")
    edges = serializers.IntegerField(help_text="Without derived relations.")
    documents = serializers.IntegerField()
    mentions = serializers.IntegerField(help_text="Pairs of a passage and a node.")
    origins = serializers.DictField(child=serializers.IntegerField(), help_text="Of nodes.")
    labels = serializers.DictField(
        child=serializers.IntegerField(), help_text="The most frequent ones of nodes."
    )
    rels = serializers.DictField(
        child=serializers.IntegerField(), help_text="The most frequent ones of edges."
    )
    best_connected = GraphConnectedSerializer(many=True)
    sampled = serializers.BooleanField(
        help_text="There was too much to count: the numbers are estimates."
    )


class GraphExtractionSerializer(serializers.Serializer[Any]):
    """Progress of extraction in a collection."""

    collection = serializers.CharField()
    graph = serializers.ChoiceField(choices=Collection.Graph.choices, help_text="How.")
    waiting = serializers.IntegerField()
    running = serializers.IntegerField()
    done = serializers.IntegerField()
    dead = serializers.IntegerField(help_text="Given up after some attempts.")
    stale = serializers.IntegerField(
        help_text="Of those that are done: in another way than they would be now."
    )
    mentions = serializers.IntegerField(help_text="Pairs of a passage and a node.")
    relations = serializers.IntegerField(help_text="Number of extracted relations.")


class GraphReextractionAnswerSerializer(serializers.Serializer[Any]):
    """Number of queued documents, and the progress."""

    queued = serializers.IntegerField(help_text="Documents that will be read again.")
    state = GraphExtractionSerializer()
