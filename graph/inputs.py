"""Nodes and edges as callers describe them, and the limits of their values. Begin with
`NodeInput` and `EdgeInput`.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.conf import settings
from django.utils.translation import gettext, gettext_noop
from pydantic import Field, with_config

from common import bounded_json
from common.errors import InvalidInput
from common.translation import format_number
from graph.models import MAX_WEIGHT
from graph.node_ids import MAX_ID_CHARACTERS, MAX_REL_CHARACTERS
from graph.reading.vertices import MAX_ID_CHARACTERS as MAX_ASKED_ID

MAX_LABELS = 32
MAX_LABEL_CHARACTERS = 100
MAX_NAME_CHARACTERS = 500
MAX_ALIASES = 100

Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARACTERS)]
Alias = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
Rel = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_REL_CHARACTERS,
        title=gettext_noop("Relation"),
        description=gettext_noop("What its source is or does, such as `WORKS_AT`."),
    ),
]
Props = Annotated[
    Mapping[str, Any] | None,
    Field(title=gettext_noop("Properties"), description=gettext_noop("Your own JSON object.")),
]


def _end(title: str, description: str) -> Any:
    return Field(min_length=1, max_length=MAX_ASKED_ID, title=title, description=description)


# Doors are derived from the annotations of both; they are checked where they are written.
@with_config(extra="forbid")
@dataclass(frozen=True, slots=True)
class NodeInput:
    """A node to write. None leaves a value as it is, or empty for a new node.

    Texts find the node by its name and by `aliases`.
    """

    id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_ID_CHARACTERS,
            title=gettext_noop("Id"),
            description=gettext_noop(
                "Your own id for it, such as `src:crm:4711` or `ent:person:ada lovelace`."
            ),
        ),
    ]
    name: Annotated[
        str | None,
        Field(
            max_length=MAX_NAME_CHARACTERS,
            title=gettext_noop("Name"),
            description=gettext_noop("Its name for people. Default: its id."),
        ),
    ] = None
    labels: Annotated[
        Sequence[Label] | None,
        Field(
            max_length=MAX_LABELS,
            title=gettext_noop("Labels"),
            description=gettext_noop("What it is, such as `Person`."),
        ),
    ] = None
    props: Props = None
    aliases: Annotated[
        Sequence[Alias],
        Field(
            max_length=MAX_ALIASES,
            title=gettext_noop("Aliases"),
            description=gettext_noop("Other names that texts and questions use for it."),
        ),
    ] = ()


@with_config(extra="forbid")
@dataclass(frozen=True, slots=True)
class EdgeInput:
    """An edge to write. None leaves a value as it is; a new edge has weight 1 and no properties."""

    source: Annotated[
        str,
        _end(
            gettext_noop("From"),
            gettext_noop("Where it begins: a node, a document (`doc:…`) or a passage (`chunk:…`)."),
        ),
    ]
    rel: Rel
    target: Annotated[str, _end(gettext_noop("To"), gettext_noop("Where it leads."))]
    weight: Annotated[
        float | None,
        Field(
            ge=0,
            le=MAX_WEIGHT,
            title=gettext_noop("Weight"),
            description=gettext_noop("How much it counts: 1."),
        ),
    ] = None
    props: Props = None


# One for all: to make one costs as much as to use it.
_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def props_text(props: Mapping[str, Any], *, field: str = "props") -> str:
    """The properties as JSON. Raises InvalidInput if invalid.

    They are an object of at most RAGSITE_GRAPH_MAX_PROPS_BYTES bytes as compact JSON in UTF-8,
    nested at most 32 deep.
    """
    if not isinstance(props, dict):
        raise InvalidInput(gettext("Properties must be a JSON object."), field=field)
    if not props:
        return "{}"
    try:
        text = _encode_json(props)
        size = _byte_length(text)
    except RecursionError as error:
        raise InvalidInput(
            gettext("Properties can be nested {limit} levels deep. Flatten them.").format(
                limit=bounded_json.MAX_DEPTH
            ),
            field=field,
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(
            gettext("A property contains an unpaired surrogate. Send complete Unicode characters."),
            field=field,
        ) from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            gettext("The properties are not valid JSON: {error}.").format(error=error), field=field
        ) from error
    most: int = settings.GRAPH_MAX_PROPS_BYTES
    if size > most:
        raise InvalidInput(_too_large_message(size, most), field=field)
    # Whether a full check is needed: deep nesting or NUL is possible.
    if "\\u0000" in text or text.count("{") + text.count("[") > bounded_json.MAX_DEPTH:
        try:
            bounded_json.check(bounded_json.load(text), max_values=most)
        except InvalidInput as error:
            raise InvalidInput(str(error), field=field) from error
    return text


def props_fit(props: Mapping[str, Any]) -> bool:
    """Whether merged properties are within the limit."""
    most: int = settings.GRAPH_MAX_PROPS_BYTES
    return _byte_length(_encode_json(props)) <= most


def check_merged_props(props: Mapping[str, Any], *, owner: str) -> None:
    """Raises InvalidInput if merged properties exceed the limit."""
    if not props_fit(props):
        told = _too_large_message(_byte_length(_encode_json(props)), settings.GRAPH_MAX_PROPS_BYTES)
        raise InvalidInput(f"{owner}: {told}", field="props")


def check_name(name: str, *, field: str = "name") -> str:
    """The name. Raises InvalidInput if invalid."""
    return _check_text(name, MAX_NAME_CHARACTERS, gettext("A name"), field)


def check_labels(labels: Sequence[str], *, field: str = "labels") -> list[str]:
    """Distinct labels in order. Raises InvalidInput."""
    unique = _check_texts(labels, MAX_LABELS, MAX_LABEL_CHARACTERS, field)
    if any(not label.strip() for label in unique):
        raise InvalidInput(gettext("A label cannot be empty."), field=field)
    return unique


def check_aliases(aliases: Sequence[str], *, field: str = "aliases") -> list[str]:
    """Distinct aliases in order. Raises InvalidInput."""
    return _check_texts(aliases, MAX_ALIASES, MAX_NAME_CHARACTERS, field)


def check_weight(weight: float, *, field: str = "weight") -> float:
    """The weight, 0 to 10⁹. Raises InvalidInput."""
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= MAX_WEIGHT:
        raise InvalidInput(
            gettext("A weight is a number from 0 to {limit}.").format(
                limit=format(MAX_WEIGHT, ",.0f")
            ),
            field=field,
        )
    return float(weight)


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _too_large_message(size: int, most: int) -> str:
    return gettext(
        "Properties have at most {limit} bytes; these have {size}. Store large texts as documents,"
        " and refer to them by id."
    ).format(limit=format_number(most), size=format_number(size))


def _check_texts(texts: Sequence[str], most: int, characters: int, field: str) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InvalidInput(gettext("Enter a list of texts."), field=field)
    if len(texts) > most:
        raise InvalidInput(
            gettext("The list has {length} entries; {most} are allowed.").format(
                most=most, length=format_number(len(texts))
            ),
            field=field,
        )
    entry = gettext("An entry")
    return list(dict.fromkeys(_check_text(text, characters, entry, field) for text in texts))


def _check_text(text: str, most: int, what: str, field: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput(gettext("{what} must be text.").format(what=what), field=field)
    if len(text) > most:
        raise InvalidInput(
            gettext("{what} has at most {most} characters; this one has {length}.").format(
                what=what, most=most, length=format_number(len(text))
            ),
            field=field,
        )
    if not text.isprintable() and any(
        unicodedata.category(letter) in ("Cc", "Cs") for letter in text
    ):
        raise InvalidInput(
            gettext("{what} cannot contain control characters or unpaired surrogates.").format(
                what=what
            ),
            field=field,
        )
    return text
