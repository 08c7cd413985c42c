"""How much one node or edge may hold, and what PostgreSQL could not store."""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from common import bounded_json
from common.errors import InvalidInput
from graph.models import MAX_WEIGHT

MAX_LABELS = 32
MAX_LABEL_CHARACTERS = 100
MAX_NAME_CHARACTERS = 500
MAX_ALIASES = 100

# One for all: to make one costs as much as to use it.
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def props_text(props: Mapping[str, Any], *, field: str = "props") -> str:
    """The properties as JSON. Raises InvalidInput where they cannot be stored.

    They are an object of at most RAGSITE_GRAPH_MAX_PROPS_BYTES bytes as compact JSON in UTF-8,
    nested at most 32 deep.
    """
    if not isinstance(props, dict):
        raise InvalidInput("Properties are a JSON object.", field=field)
    if not props:
        return "{}"
    try:
        text = _compact(props)
        size = _bytes(text)
    except RecursionError as error:
        raise InvalidInput(
            f"Properties are nested at most {bounded_json.MAX_DEPTH} deep. Flatten them.",
            field=field,
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "A property holds half of a surrogate pair. Send whole Unicode characters.", field=field
        ) from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The properties are no JSON: {error}.", field=field) from error
    most: int = settings.GRAPH_MAX_PROPS_BYTES
    if size > most:
        raise InvalidInput(_too_large(size, most), field=field)
    if _wants_a_look(text):
        _check_values(text, field, most)
    return text


def fits(props: Mapping[str, Any]) -> bool:
    """Whether what is stored after properties were put together is within the limit."""
    most: int = settings.GRAPH_MAX_PROPS_BYTES
    return _bytes(_compact(props)) <= most


def check_merged(props: Mapping[str, Any], *, owner: str) -> None:
    """Raise InvalidInput where it is not."""
    if not fits(props):
        told = _too_large(_bytes(_compact(props)), settings.GRAPH_MAX_PROPS_BYTES)
        raise InvalidInput(f"{owner}: {told}", field="props")


def check_name(name: str, *, field: str = "name") -> str:
    """The name itself. Raises InvalidInput where it cannot be one."""
    return _check_text(name, MAX_NAME_CHARACTERS, "A name", field)


def check_labels(labels: Sequence[str], *, field: str = "labels") -> list[str]:
    """Each label once, in their order. Raises InvalidInput."""
    unique = _check_texts(labels, MAX_LABELS, MAX_LABEL_CHARACTERS, "label", field)
    if any(not label.strip() for label in unique):
        raise InvalidInput("A label is not empty.", field=field)
    return unique


def check_aliases(aliases: Sequence[str], *, field: str = "aliases") -> list[str]:
    """Each other name once. Raises InvalidInput."""
    return _check_texts(aliases, MAX_ALIASES, MAX_NAME_CHARACTERS, "alias", field)


def check_weight(weight: float, *, field: str = "weight") -> float:
    """The weight as a number from 0 to 10⁹. Raises InvalidInput."""
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= MAX_WEIGHT:
        raise InvalidInput(f"A weight is a number from 0 to {MAX_WEIGHT:,.0f}.", field=field)
    return float(weight)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _wants_a_look(text: str) -> bool:
    """Whether the depth or a character may be wrong; most properties are small and plain."""
    return "\\u0000" in text or text.count("{") + text.count("[") > bounded_json.MAX_DEPTH


def _check_values(text: str, field: str, most: int) -> None:
    try:
        bounded_json.check(bounded_json.load(text), max_values=most)
    except InvalidInput as error:
        raise InvalidInput(str(error), field=field) from error


def _too_large(size: int, most: int) -> str:
    return (
        f"Properties have at most {most:,} bytes, these have {size:,}. Keep large texts as"
        " documents and name them by their ids."
    )


def _check_texts(
    texts: Sequence[str], most: int, characters: int, what: str, field: str
) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InvalidInput(f"Give a list, one {what} an entry.", field=field)
    if len(texts) > most:
        raise InvalidInput(f"At most {most} entries; these are {len(texts):,}.", field=field)
    return list(dict.fromkeys(_check_text(text, characters, "An entry", field) for text in texts))


def _check_text(text: str, most: int, what: str, field: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"{what} is a text.", field=field)
    if len(text) > most:
        raise InvalidInput(
            f"{what} has at most {most} characters, this one has {len(text):,}.", field=field
        )
    if not text.isprintable() and _unstorable(text):
        raise InvalidInput(
            f"{what} holds no control character and no half of a surrogate pair.", field=field
        )
    return text


def _unstorable(text: str) -> bool:
    return any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)
