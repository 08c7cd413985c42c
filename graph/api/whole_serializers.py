"""What the API says of much of the graph at once."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from documents.models import Collection
from graph.api.serializers import NodeSerializer, names


@extend_schema_serializer(component_name="GraphCounts")
class CountsSerializer(serializers.Serializer[Any]):
    """Of a kind."""

    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="There just so.")


@extend_schema_serializer(component_name="GraphBulkAnswer")
class BulkAnswerSerializer(serializers.Serializer[Any]):
    """What became of many."""

    nodes = CountsSerializer()
    edges = CountsSerializer()
    stubs = serializers.IntegerField(help_text="Nodes that were made for ends of edges.")
    taken = names("Names by which texts mean another node already, in their normal form.")


@extend_schema_serializer(component_name="GraphMergeAnswer")
class MergeAnswerSerializer(serializers.Serializer[Any]):
    """What became of the others, or would."""

    preview = serializers.BooleanField(help_text="True: nothing was changed.")
    keep = serializers.CharField(help_text="Id of the node that stays.")
    nodes = serializers.IntegerField(help_text="How many go into it.")
    edges = serializers.IntegerField(help_text="That come to hang on it.")
    edges_joined = serializers.IntegerField(help_text="Of these: that become one with another.")
    edges_dropped = serializers.IntegerField(
        help_text="That go, because they lead from one of the nodes to another."
    )
    mentions = serializers.IntegerField(help_text="Passages that speak of it from then on.")
    aliases = serializers.IntegerField(help_text="Names that mean it from then on.")


@extend_schema_serializer(component_name="GraphConnected")
class ConnectedSerializer(serializers.Serializer[Any]):
    """A node with many relations."""

    node = NodeSerializer(source="vertex")
    degree = serializers.IntegerField(help_text="How many.")


@extend_schema_serializer(component_name="GraphStatistics")
class StatisticsSerializer(serializers.Serializer[Any]):
    """How large the graph is, as you see it."""

    nodes = serializers.IntegerField(help_text="Besides documents and passages.")
    edges = serializers.IntegerField(help_text="Besides those that documents tell themselves.")
    documents = serializers.IntegerField()
    mentions = serializers.IntegerField(help_text="Pairs of a passage and a node.")
    origins = serializers.DictField(child=serializers.IntegerField(), help_text="Of nodes.")
    labels = serializers.DictField(
        child=serializers.IntegerField(), help_text="The most frequent ones of nodes."
    )
    rels = serializers.DictField(
        child=serializers.IntegerField(), help_text="The most frequent ones of edges."
    )
    best_connected = ConnectedSerializer(many=True)
    sampled = serializers.BooleanField(
        help_text="There was too much to look at: the numbers are estimates."
    )


@extend_schema_serializer(component_name="GraphExtraction")
class ExtractionSerializer(serializers.Serializer[Any]):
    """How far the documents of a collection are read for the graph."""

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
    relations = serializers.IntegerField(help_text="That passages tell of.")


@extend_schema_serializer(component_name="GraphReextractionAnswer")
class ReextractionSerializer(serializers.Serializer[Any]):
    """What was taken on."""

    queued = serializers.IntegerField(help_text="Documents that are to be read again.")
    state = ExtractionSerializer()
