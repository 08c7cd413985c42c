"""The figures of the dashboard in JSON: one number for each part of the time."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_serializer as named
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from dashboard.ranges import CHOICES, DEFAULT
from dashboard.reading import Board, Unanswered

NONE = "Null where nothing is known."


class DashboardParameters(WorkspaceParameters):
    """How far back."""

    range = serializers.ChoiceField(
        choices=CHOICES,
        default=DEFAULT,
        help_text="`24h` by the hour, `7d` by six hours, `30d` by the day.",
    )


def _counts(help_text: str = "") -> Any:
    return serializers.ListField(child=serializers.IntegerField(), help_text=help_text or None)


def _gappy(help_text: str = NONE) -> Any:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=help_text)


@named(component_name="DashboardNow")
class NowSerializer(serializers.Serializer[Any]):
    """At this moment."""

    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Documents queued or in work.")
    failed = serializers.IntegerField(help_text="Documents.")


@named(component_name="DashboardStock")
class StockSerializer(serializers.Serializer[Any]):
    """At the end of each part."""

    documents = _gappy()
    chunks = _gappy()
    waiting = _gappy("The most that waited at once. " + NONE)
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="Counted since then; before, from the documents that are still there.",
    )


@named(component_name="DashboardIngested")
class IngestedSerializer(serializers.Serializer[Any]):
    """In runs that ended in each part."""

    ready = _counts("Files.")
    failed = _counts("Files.")
    chunks = _counts("Passages.")
    rate = serializers.FloatField(allow_null=True, help_text="Passages a second while runs worked.")


@named(component_name="DashboardDoor")
class DoorSerializer(serializers.Serializer[Any]):
    """Searches that came by one door."""

    door = serializers.CharField(source="source", help_text="`web`, `api`, `command` or `chat`.")
    count = _counts()


@named(component_name="DashboardSearched")
class SearchedSerializer(serializers.Serializer[Any]):
    """Searches of each part."""

    count = _counts()
    nothing = _counts("That found nothing, or that the chat had no answer to.")
    asked = _counts("Questions of chats.")
    refused = _counts("Of these, those that the documents do not answer.")
    p50_ms = _gappy("Half took no longer. " + NONE)
    p95_ms = _gappy("95 % took no longer. " + NONE)
    total_p50_ms = serializers.FloatField(allow_null=True, help_text="Of all parts.")
    total_p95_ms = serializers.FloatField(allow_null=True, help_text="Of all parts.")
    doors = DoorSerializer(many=True)


@named(component_name="DashboardQuality")
class QualitySerializer(serializers.Serializer[Any]):
    """How good the answers of one collection were."""

    slug = serializers.CharField()
    name = serializers.CharField()
    ndcg = _gappy("nDCG@10 as last measured in each part; null where it was not.")
    latest = serializers.FloatField()
    questions = serializers.IntegerField(help_text="Judged ones.")


@named(component_name="DashboardUnanswered")
class UnansweredSerializer(serializers.Serializer[Any]):
    """A question that was asked in vain."""

    question = serializers.CharField()
    times = serializers.IntegerField()
    people = serializers.IntegerField()
    refused = serializers.BooleanField(help_text="A chat said that the documents do not tell.")
    last_at = serializers.DateTimeField()


@named(component_name="Dashboard")
class DashboardSerializer(serializers.Serializer[Any]):
    """All figures; every list has as many numbers as `starts`."""

    range = serializers.ChoiceField(choices=CHOICES)
    starts = serializers.ListField(
        child=serializers.DateTimeField(), help_text="When each part begins."
    )
    end = serializers.DateTimeField(help_text="When the last part ends, after now.")
    now = NowSerializer()
    stock = StockSerializer()
    ingested = IngestedSerializer()
    searched = SearchedSerializer()
    quality = QualitySerializer(many=True, help_text="Of the four largest golden sets.")
    unanswered = UnansweredSerializer(
        many=True,
        help_text="The 20 most frequent ones: to editors of everybody, to others their own.",
    )


def board_data(board: Board, questions: list[Unanswered]) -> dict[str, Any]:
    """What the serializer writes."""
    return {
        "range": board.range.kind.name,
        "starts": board.range.starts,
        "end": board.range.end,
        "now": asdict(board.now),
        "stock": asdict(board.stock),
        "ingested": asdict(board.ingested),
        "searched": asdict(board.searched),
        "quality": [asdict(each) for each in board.quality],
        "unanswered": [asdict(each) for each in questions],
    }
