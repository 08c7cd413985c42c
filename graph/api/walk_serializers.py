"""What the API says of walks through the graph."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from graph.api.serializers import ORIGIN, ORIGINS, LinkSerializer, NodeSerializer, names
from graph.extraction.found import KINDS as KINDS_OF_MENTION
from graph.reading.results import Neighbour, Reached


@extend_schema_serializer(component_name="GraphTruncated")
class TruncatedSerializer(serializers.Serializer[Any]):
    """What was left out."""

    limit = serializers.BooleanField(help_text="There is more than was asked for.")
    hubs = names(
        "Ids of nodes with so many neighbours that only those of the largest weight were looked at."
    )
    work = serializers.BooleanField(
        help_text="There was so much to look at that the search was given up."
    )


@extend_schema_serializer(component_name="GraphNeighbor")
class NeighbourSerializer(serializers.Serializer[Neighbour]):
    """A node beside another."""

    node = NodeSerializer(source="vertex")
    rel = serializers.CharField()
    direction = serializers.SerializerMethodField(
        help_text="`out`: the relation leads from the node that was asked about to this one."
    )
    weight = serializers.FloatField()
    origin = serializers.ChoiceField(choices=ORIGINS, help_text=ORIGIN)
    props = serializers.DictField(
        allow_null=True,
        help_text="Of the edge. Null behind the first 8 MB of a page: ask for the edge.",
    )

    def get_direction(self, neighbour: Neighbour) -> str:
        return _direction(neighbour)


def _direction(step: Neighbour | Reached) -> str:
    return "out" if step.outgoing else "in"


@extend_schema_serializer(component_name="GraphNeighbors")
class NeighboursSerializer(serializers.Serializer[Any]):
    """What is related to a node, in natural order: `…:2` before `…:10`."""

    node = NodeSerializer(help_text="The one that was asked about.")
    total = serializers.IntegerField(help_text="On all pages.")
    next = serializers.CharField(allow_null=True, help_text="Address of the next page, or null.")
    results = NeighbourSerializer(many=True)
    truncated = TruncatedSerializer()


@extend_schema_serializer(component_name="GraphReached")
class ReachedSerializer(serializers.Serializer[Reached]):
    """A node, and the last step to it."""

    node = NodeSerializer(source="vertex")
    depth = serializers.IntegerField(help_text="Steps from the start, which has 0.")
    parent = serializers.SerializerMethodField(  # type: ignore[assignment]
        help_text="Id of the node that the last step comes from; null of the start."
    )
    rel = serializers.SerializerMethodField(help_text="Of the last step; null of the start.")
    direction = serializers.SerializerMethodField(
        help_text="`out`: the last step goes along the relation; null of the start."
    )

    def get_parent(self, reached: Reached) -> str | None:
        return reached.parent or None

    def get_rel(self, reached: Reached) -> str | None:
        return reached.rel or None

    def get_direction(self, reached: Reached) -> str | None:
        return _direction(reached) if reached.depth else None


@extend_schema_serializer(component_name="GraphTraversal")
class TraversalSerializer(serializers.Serializer[Any]):
    """What is within reach, the nearest first, the start among it."""

    reached = ReachedSerializer(many=True)
    truncated = TruncatedSerializer()


@extend_schema_serializer(component_name="GraphPath")
class PathSerializer(serializers.Serializer[Any]):
    """A shortest way, if there is one."""

    found = serializers.BooleanField(
        help_text="False: there is none of at most `max_depth` steps, unless `truncated` says that"
        " the search was given up."
    )
    length = serializers.IntegerField(allow_null=True, help_text="Steps; null without a way.")
    nodes = NodeSerializer(many=True, help_text="From source to target.")
    edges = LinkSerializer(
        many=True, help_text="One fewer. Each tells its own direction: a way may go against it."
    )
    max_depth = serializers.IntegerField()
    truncated = TruncatedSerializer()


@extend_schema_serializer(component_name="GraphMention")
class MentionSerializer(serializers.Serializer[Any]):
    """A passage that speaks of the node."""

    passage = NodeSerializer()
    document = NodeSerializer()
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


@extend_schema_serializer(component_name="GraphMentions")
class MentionsSerializer(serializers.Serializer[Any]):
    """Passages that speak of a node, in the order of documents."""

    node = NodeSerializer(help_text="The one that was asked about.")
    next = serializers.CharField(allow_null=True, help_text="Address of the next page, or null.")
    results = MentionSerializer(many=True)


@extend_schema_serializer(component_name="GraphElement")
class ElementSerializer(serializers.Serializer[Any]):
    """A node or an edge as cytoscape.js takes it."""

    data = serializers.DictField()  # type: ignore[assignment]


@extend_schema_serializer(component_name="GraphElements")
class ElementsSerializer(serializers.Serializer[Any]):
    """What cytoscape.js draws."""

    nodes = ElementSerializer(many=True)
    edges = ElementSerializer(many=True)


@extend_schema_serializer(component_name="GraphSubgraph")
class SubgraphSerializer(serializers.Serializer[Any]):
    """What is around some nodes, as cytoscape.js reads it."""

    elements = ElementsSerializer()
    missing = names("Those of the ids that are not there, or not for you.")
    truncated = TruncatedSerializer()
