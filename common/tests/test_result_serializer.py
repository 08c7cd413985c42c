"""Answers of the API that are made of dataclasses and models."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from rest_framework import serializers

from common.serializers import ResultSerializer


@dataclass(frozen=True)
class Part:
    name: Annotated[str, "How it is called."]
    size: int | None = None


@dataclass(frozen=True)
class Whole:
    kind: Literal["new", "old"]
    parts: tuple[Part, ...]
    first: Part | None
    counts: Annotated[Mapping[str, int], "By name."]
    notes: tuple[str, ...]
    at: datetime
    secret: str = "hidden"


class WholeSerializer(ResultSerializer):
    """All of it."""

    result = Whole
    skip = frozenset({"secret"})

    id = serializers.IntegerField()
    number = serializers.IntegerField(source="counts.a")
    remarks = serializers.ListField(child=serializers.CharField(), source="notes")


class Found(BaseModel):
    """What was found."""

    key: str = Field(validation_alias="document_key", description="Of the document.")
    rank: int | None
    extra: dict[str, Any] = Field(default={})


class FoundSerializer(ResultSerializer):
    """What was found."""

    result = Found


def test_the_fields_of_a_dataclass_are_those_of_the_answer() -> None:
    fields = WholeSerializer().fields
    assert list(fields) == ["id", "number", "kind", "parts", "first", "counts", "remarks", "at"]
    assert fields["counts"].help_text == "By name."
    assert list(fields["kind"].choices) == ["new", "old"]
    part = fields["parts"].child
    assert part.fields["name"].help_text == "How it is called."
    assert part.fields["size"].allow_null
    assert not part.fields["name"].allow_null
    assert fields["first"].allow_null


def test_an_answer_has_the_values_of_the_result() -> None:
    whole = Whole(
        "new", (Part("a", 1), Part("b")), None, {"a": 2}, ("x",), datetime(2026, 5, 1, tzinfo=UTC)
    )
    shown = WholeSerializer({"id": 7, **vars(whole)}).data
    assert shown == {
        "id": 7,
        "number": 2,
        "kind": "new",
        "parts": [{"name": "a", "size": 1}, {"name": "b", "size": None}],
        "first": None,
        "counts": {"a": 2},
        "remarks": ["x"],
        "at": "2026-05-01T00:00:00Z",
    }


def test_a_model_says_where_its_fields_come_from_and_which_may_be_missing() -> None:
    fields = FoundSerializer().fields
    assert (fields["key"].source, fields["key"].help_text) == ("document_key", "Of the document.")
    assert fields["rank"].allow_null
    assert [name for name, field in fields.items() if field.required] == ["key", "rank"]
