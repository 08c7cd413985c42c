"""What the API says of pipelines, and the shape of a definition."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from drf_spectacular.utils import extend_schema_serializer as named
from rest_framework import serializers

from rag.pipelines.definition import EDGE_TYPES, MAX_TOKENS, TEMPERATURE
from rag.pipelines.kinds import KINDS
from rag.pipelines.limits import MAX_ROUNDS, MAX_TIMEOUT
from rag.services.pipelines import Kept


@named(component_name="PipelineModel")
class ModelSerializer(serializers.Serializer[Any]):
    """Which chat model a node asks, and how it is to answer."""

    name = serializers.CharField(
        required=False, help_text="As `GET /models/` tells. Default: the run's, or the site's."
    )
    temperature = serializers.FloatField(
        required=False, min_value=0, max_value=2, help_text=f"Default {TEMPERATURE}."
    )
    max_tokens = serializers.IntegerField(
        required=False, min_value=1, help_text=f"Default {MAX_TOKENS:,}."
    )
    top_p = serializers.FloatField(required=False, min_value=0.001, max_value=1)


@named(component_name="PipelineWorker")
class WorkerSerializer(serializers.Serializer[Any]):
    """Whom a coordinator may give a step."""

    name = serializers.CharField()
    prompt = serializers.CharField(required=False)
    tools = serializers.ListField(child=serializers.CharField(), required=False)


@named(component_name="PipelineNode")
class NodeSerializer(serializers.Serializer[Any]):
    """A step. Which fields a type takes, and what they mean: docs/reference/pipelines.md."""

    id = serializers.CharField(help_text="By which edges name it.")
    type = serializers.ChoiceField(choices=sorted(KINDS))
    prompt = serializers.CharField(required=False, help_text="What the model is told to do.")
    model = ModelSerializer(required=False)
    tools = serializers.ListField(child=serializers.CharField(), required=False)
    max_iter = serializers.IntegerField(required=False, help_text="Turns or rounds, at most.")
    timeout = serializers.FloatField(
        required=False, min_value=1, max_value=MAX_TIMEOUT, help_text="Seconds."
    )
    condition = serializers.CharField(required=False, help_text="Of a gate.")
    separator = serializers.CharField(required=False, help_text="Of an aggregator.")
    threshold = serializers.FloatField(required=False, help_text="Of an evaluator.")
    on_exhausted = serializers.ChoiceField(
        choices=["best", "fail"], required=False, help_text="Of an evaluator."
    )
    max_tasks = serializers.IntegerField(
        required=False, help_text="Of an orchestrator or coordinator."
    )
    workers = WorkerSerializer(many=True, required=False, help_text="Of a coordinator.")
    collection = serializers.CharField(required=False, help_text="Of an sql node.")
    dialect = serializers.CharField(required=False, help_text="Of an sql node.")


@named(component_name="PipelineEdge")
class EdgeSerializer(serializers.Serializer[Any]):
    """A way from a node to the next."""

    to = serializers.CharField()
    type = serializers.ChoiceField(choices=EDGE_TYPES, required=False)
    condition = serializers.CharField(
        required=False, help_text='When it is taken, such as `output contains "yes"`.'
    )
    name = serializers.CharField(required=False, help_text="What a router calls it.")
    max_iter = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ROUNDS, help_text="Rounds of a loop, at most."
    )

    def get_fields(self) -> dict[str, Any]:
        """With `from`, which Python keeps for itself."""
        return {"from": serializers.CharField(), **super().get_fields()}


@named(component_name="PipelineDefinition")
class DefinitionSerializer(serializers.Serializer[Any]):
    """A pipeline: nodes, and edges between them."""

    id = serializers.CharField(help_text="Small letters, digits and hyphens.")
    name = serializers.CharField(required=False, help_text="Default: its id.")
    description = serializers.CharField(required=False)
    nodes = NodeSerializer(many=True)
    edges = EdgeSerializer(many=True, required=False)
    entry_node = serializers.CharField(help_text="Where it begins.")
    timeout = serializers.FloatField(required=False, help_text="Of a run, in seconds.")


@named(component_name="PipelineListed")
class ListedSerializer(serializers.Serializer[Kept]):
    """A pipeline without what it does."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    is_template = serializers.BooleanField(help_text="Whether it comes with the site.")
    version = serializers.IntegerField(allow_null=True, help_text="Counts changes.")
    updated_at = serializers.DateTimeField(allow_null=True)


@named(component_name="Pipeline")
class PipelineSerializer(ListedSerializer):
    """A pipeline."""

    definition = extend_schema_field(DefinitionSerializer)(serializers.JSONField)()


@named(component_name="PipelineList")
class PipelinesSerializer(serializers.Serializer[Any]):
    """The workspace's own by id, then templates."""

    results = ListedSerializer(many=True)


@named(component_name="PipelineCheck")
class CheckedSerializer(serializers.Serializer[Any]):
    """A definition in which nothing is wrong, in its shortest form."""

    definition = extend_schema_field(DefinitionSerializer)(serializers.JSONField)()
