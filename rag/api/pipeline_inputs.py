"""What requests about pipelines and traces may say."""

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.serializers import PageParameters, StrictSerializer, TextField
from rag.api.chat_inputs import MAX_TURNS, TurnInput
from rag.models import Trace
from rag.pipelines.limits import MAX_ID_CHARACTERS, MAX_PROMPT_CHARACTERS, MAX_QUESTION_CHARACTERS
from rag.services.trace_statistics import MAX_DAYS
from search.api.inputs import FilterField


@extend_schema_serializer(component_name="PipelineRun")
class RunInput(StrictSerializer):
    """A question to a pipeline."""

    question = TextField(max_length=MAX_QUESTION_CHARACTERS)
    collections = serializers.ListField(
        child=serializers.SlugField(max_length=63),
        required=False,
        max_length=100,
        help_text="Slugs of collections that its tools see. Default: all that you may see.",
    )
    filter = FilterField(
        required=False, help_text="What passages must be like, in the language of searches."
    )
    history = serializers.ListField(
        child=TurnInput(),
        required=False,
        max_length=MAX_TURNS,
        help_text="What was said before, oldest first.",
    )
    model = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="A chat model of `GET /models/`, for nodes that name none. Default: the site's.",
    )
    system_prompt = TextField(
        required=False,
        max_length=MAX_PROMPT_CHARACTERS,
        help_text="What you demand of the answer, behind the prompts of the nodes that write it.",
    )
    language = TextField(
        required=False,
        max_length=40,
        help_text="What the answer is written in, such as `German`, `de`, or of code `Python`.",
    )
    stream = serializers.BooleanField(
        default=True, help_text="Events as they come; false: one JSON object at the end."
    )


class TraceParameters(PageParameters, WorkspaceParameters):
    """Which runs."""

    pipeline = TextField(required=False, max_length=MAX_ID_CHARACTERS, help_text="Id of one.")
    state = serializers.ChoiceField(
        choices=Trace.State.values, required=False, help_text="Only runs in this state."
    )


class StatisticsParameters(WorkspaceParameters):
    """Of what, and since when."""

    pipeline = TextField(
        required=False, max_length=MAX_ID_CHARACTERS, help_text="Id of one. Default: all."
    )
    days = serializers.IntegerField(
        default=7, min_value=1, max_value=MAX_DAYS, help_text="The last so many."
    )
