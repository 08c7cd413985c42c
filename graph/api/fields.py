"""What requests about the graph have in common."""

from typing import Any

from rest_framework import serializers

from common.serializers import TextField
from graph.keys import MAX_REL_CHARACTERS
from graph.limits import MAX_LABEL_CHARACTERS, MAX_LABELS
from graph.reading.arms import DIRECTIONS, GRAINS
from graph.reading.resolving import MAX_ID_CHARACTERS as MAX_ASKED_ID
from graph.services.reading import (
    MAX_DEPTH,
    MAX_NAMES,
)

MAX_IDS = 100
#: A place between two ids, in base 64.
MAX_CURSOR = 10_000


def id_field(meaning: str, **options: Any) -> TextField:
    """An id of any kind."""
    return TextField(max_length=MAX_ASKED_ID, help_text=meaning, **options)


def rels_field() -> serializers.ListField:
    """Names of relations."""
    return serializers.ListField(
        child=TextField(max_length=MAX_REL_CHARACTERS),
        required=False,
        max_length=MAX_NAMES,
        help_text="Only by these relations; may be repeated. Default: by any.",
    )


def labels_field(meaning: str) -> serializers.ListField:
    """Labels."""
    return serializers.ListField(
        child=TextField(max_length=MAX_LABEL_CHARACTERS),
        required=False,
        max_length=MAX_LABELS,
        help_text=meaning,
    )


def direction_field() -> serializers.ChoiceField:
    """Along relations, or against them."""
    return serializers.ChoiceField(
        choices=DIRECTIONS,
        default="both",
        help_text="`out` along relations, from their source to their target; `in` against them.",
    )


def grain_field() -> serializers.ChoiceField:
    """Documents or passages."""
    return serializers.ChoiceField(
        choices=GRAINS,
        default="document",
        help_text="Whether what mentions a node is shown as documents or as passages.",
    )


def depth_field(default: int) -> serializers.IntegerField:
    """How far."""
    return serializers.IntegerField(
        min_value=1, max_value=MAX_DEPTH, default=default, help_text="Steps, at most."
    )


def strict_field(**options: Any) -> serializers.BooleanField:
    """Whether what is missing is made."""
    return serializers.BooleanField(
        **options or {"default": True},
        help_text="400 where an end of an edge is not there. False: it is made, without a name."
        " Default true.",
    )


def replace_props_field(**options: Any) -> serializers.BooleanField:
    """What becomes of former properties."""
    return serializers.BooleanField(
        **options or {"default": False},
        help_text="Properties take the place of all that are there, instead of being added to"
        " them. Default false.",
    )
