"""What the API says of an answer: the shapes of the events, gathered."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from rag.events import Cited, Done, Event, Metadata, Retrieved, text_of


class PlaceSerializer(serializers.Serializer[Any]):
    """Where a passage stands."""

    number = serializers.IntegerField(help_text="By which the answer cites it: `[1]`.")
    chunk = serializers.IntegerField()
    document = serializers.IntegerField()
    document_key = serializers.CharField()
    version = serializers.IntegerField()
    collection = serializers.CharField(help_text="Its slug.")
    title = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    page = serializers.IntegerField(allow_null=True)
    start = serializers.IntegerField(help_text="Offset in the document's text.")
    end = serializers.IntegerField()
    url = serializers.CharField(help_text="Page of the document with the passage marked.")


@extend_schema_serializer(component_name="ChatPassage")
class PassageSerializer(PlaceSerializer):
    """A passage that was found, with its scores as in a search."""

    text = serializers.CharField()
    similarity = serializers.FloatField(allow_null=True)
    lexical = serializers.FloatField(allow_null=True)
    fused = serializers.FloatField(allow_null=True)
    rerank = serializers.FloatField(allow_null=True)


@extend_schema_serializer(component_name="ChatCitation")
class CitationSerializer(PlaceSerializer):
    """A passage that the answer rests on: `start` and `end` are those of `quote`."""

    quote = serializers.CharField(help_text="Text of the document at these offsets.")
    at = serializers.IntegerField(help_text="Offset in the answer of the `[number]`.")


@extend_schema_serializer(component_name="ChatUnsupported")
class UnsupportedSerializer(serializers.Serializer[Any]):
    """A sentence of the answer for which nothing in its sources speaks."""

    start = serializers.IntegerField(help_text="Offset in the answer.")
    end = serializers.IntegerField()
    text = serializers.CharField()


@extend_schema_serializer(component_name="ChatVerdict")
class VerdictSerializer(serializers.Serializer[Any]):
    """What the check of the answer found."""

    refused = serializers.BooleanField(help_text="The answer is that the sources have none.")
    unsupported = UnsupportedSerializer(many=True)
    dropped_citations = serializers.IntegerField(
        help_text="Citations of passages that there are not, taken out of the text."
    )


@extend_schema_serializer(component_name="ChatUsage")
class UsageSerializer(serializers.Serializer[Any]):
    """As the model's server counts; 0 where it does not."""

    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()


@extend_schema_serializer(component_name="ChatAnswer")
class AnswerSerializer(serializers.Serializer[Any]):
    """An answer with what it rests on."""

    answer = serializers.CharField()
    citations = CitationSerializer(many=True)
    passages = PassageSerializer(many=True)
    verdict = VerdictSerializer()
    model = serializers.CharField(help_text="`extractive` where sentences were quoted.")
    generator = serializers.ChoiceField(choices=["extractive", "model", "pipeline"])
    pipeline = serializers.CharField(allow_null=True)
    queries = serializers.ListField(
        child=serializers.CharField(),
        help_text="What was searched for: the question, or what it was put into.",
    )
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What of the search should have worked and did not.",
    )
    memory = serializers.DictField(
        allow_null=True, help_text="What was remembered; null where nothing was asked for."
    )
    finish_reason = serializers.ChoiceField(choices=["stop", "length", "refused", "tool_calls"])
    usage = UsageSerializer()
    elapsed_ms = serializers.FloatField()
    first_token_ms = serializers.FloatField(allow_null=True)
    conversation = serializers.IntegerField(allow_null=True, help_text="Null: it is not kept.")
    message = serializers.IntegerField(allow_null=True, help_text="The answer's id in it.")
    trace = serializers.IntegerField(allow_null=True, help_text="Of a pipeline's run.")


def whole(events: Sequence[Event]) -> dict[str, Any]:
    """What the events of an answer that came to its end tell, as one object."""
    (begun,) = (event.data() for event in events if isinstance(event, Metadata))
    (ended,) = (event.data() for event in events if isinstance(event, Done))
    searches = [event for event in events if isinstance(event, Retrieved)]
    passages = {each["number"]: each for search in searches for each in search.data()["passages"]}
    return {
        "answer": text_of(events),
        "citations": [event.data() for event in events if isinstance(event, Cited)],
        "passages": [passages[number] for number in sorted(passages)],
        "queries": [search.query for search in searches],
        "degraded": sorted({name for search in searches for name in search.degraded}),
        "usage": {name: ended[name] for name in ("input_tokens", "output_tokens")},
        **{name: begun[name] for name in ("model", "generator", "pipeline", "memory")},
        **{name: begun[name] for name in ("conversation", "message")},
        **{name: ended[name] for name in ("verdict", "finish_reason", "trace")},
        **{name: ended[name] for name in ("elapsed_ms", "first_token_ms")},
    }
