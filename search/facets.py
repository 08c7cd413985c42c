"""Facets: which values the found passages have, and how many of them each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.errors import InvalidInput
from documents.models import Chunk
from search.filters import Comparison, to_text
from search.filters.fields import METADATA, Field, parse_field
from search.filters.tree import Operator
from search.results import Facet
from search.retrieval.arms import Candidate
from search.retrieval.facts import ScopeFacts

MOST_FACETS = 10
MOST_VALUES = 50
#: Longer ones are texts, and nobody picks a text from a list.
LONGEST_VALUE = 100
#: Asks for the fields of the metadata that tell the found passages apart best.
TELLING = "*"
MOST_TELLING = 3
TELLING_VALUES = range(2, 21)

Value = str | int | float | bool
Values = Mapping[int, Mapping[str, Any]]


def facets(
    found: Sequence[Candidate], *, facts: ScopeFacts, fields: Sequence[str]
) -> dict[str, tuple[Facet, ...]]:
    """Values by facet, most frequent first: always of `collection` and `media_type`, and of the
    metadata `fields` that are named. `*` stands for the most telling ones.

    Raises InvalidInput for a field that cannot be counted.
    """
    if len(fields) > MOST_FACETS:
        raise InvalidInput(f"At most {MOST_FACETS} facets can be asked for.", field="facet")
    named = {name: _metadata_field(name) for name in fields if name != TELLING}
    collections = Counter(each.collection_id for each in found)
    counted = {
        "collection": tuple(
            Facet(facts.collections[pk].slug, facts.collections[pk].name, count)
            for pk, count in collections.most_common()
        ),
        "media_type": tuple(
            Facet(value, value, count)
            for value, count in Counter(each.media_type for each in found).most_common()
        ),
    }
    if not fields:
        return counted
    metadata = dict(
        Chunk.objects.filter(id__in=[each.chunk_id for each in found]).values_list("id", "metadata")
    )
    if TELLING in fields:
        named |= {str(field): field for field in _telling(metadata) if str(field) not in named}
    return counted | {name: _counted(field, metadata) for name, field in named.items()}


def _metadata_field(name: str) -> Field:
    field = parse_field(name, at="facet")
    if field.name != METADATA:
        raise InvalidInput(
            f"“{name}” is no field of the metadata. Facets of {METADATA} can be asked for;"
            " collection and media_type are always counted.",
            field="facet",
        )
    return field


def _counted(field: Field, metadata: Values) -> tuple[Facet, ...]:
    counts: Counter[tuple[type, Value]] = Counter()
    for said in metadata.values():
        # With its type, because 1, 1.0 and True are one key to Python and none to a filter.
        counts.update({(type(value), value) for value in _values(said, field.keys)})
    return tuple(
        Facet(
            value=_shown(value),
            label=_shown(value),
            count=count,
            filter=to_text(Comparison(field, Operator.EQ, value)),
        )
        for (_, value), count in sorted(
            counts.items(), key=lambda item: (-item[1], _shown(item[0][1]))
        )[:MOST_VALUES]
    )


def _values(said: Any, keys: Sequence[str]) -> Iterator[Value]:
    """The scalars at a path; a list stands for each of its elements, as in filters."""
    for key in keys:
        if not isinstance(said, Mapping):
            return
        said = said.get(key)
    for value in said if isinstance(said, list) else [said]:
        if isinstance(value, (bool, int, float)) or (
            isinstance(value, str) and 0 < len(value) <= LONGEST_VALUE
        ):
            yield value


def _shown(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _telling(metadata: Values) -> list[Field]:
    """Fields with a few values, each of several passages: not the same in all, and no numbers of
    the passages themselves."""
    names = Counter(name for said in metadata.values() for name in said)
    telling = []
    for name, present in names.items():
        if present * 3 < len(metadata):
            continue
        counts = Counter(value for said in metadata.values() for value in _values(said, (name,)))
        if len(counts) in TELLING_VALUES and 2 * len(counts) <= counts.total():
            telling.append((-present, len(counts), name))
    return [Field(METADATA, (name,)) for _, _, name in sorted(telling)[:MOST_TELLING]]
