"""Facets: which values the found passages have, and how many of them each."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from common.errors import InvalidInput
from search.facet_fields import (
    COLLECTION,
    DATED,
    USUAL,
    WITH_PARAMETER,
    Material,
    Value,
    as_facet,
    facet_field,
    scalars_at,
    shown,
)
from search.filters import chosen, chosen_fields, is_chosen, loosened
from search.filters.derived import DATE_KEYS
from search.filters.fields import METADATA, Field, parse_field
from search.listing import Listing, make_listing, to_count
from search.results import Facet, Scope
from search.retrieval.facts import ScopeFacts

MOST_FACETS = 10
MOST_VALUES = 50
#: Asks for the usual facets, with the metadata that the collections chose or, where none did, that
#: tell the found passages apart best.
TELLING = "*"
MOST_TELLING = 3
TELLING_VALUES = range(2, 21)

#: With its type, because 1, 1.0 and True are one key to Python and none to a filter.
Counts = Counter[tuple[type, Value]]


def count_facets(listing: Listing, *, fields: Sequence[str]) -> dict[str, tuple[Facet, ...]]:
    """Values by facet, most frequent first and years newest first: always of `collection` and
    `media_type`, and of the `fields` that are named.

    Of a facet that is named, or meant by `*`, what was chosen in it does not hide its other values:
    it is counted in the same search without that choice. Raises InvalidInput for a field that
    cannot be counted.
    """
    if len(fields) > MOST_FACETS:
        raise InvalidInput(f"At most {MOST_FACETS} facets can be asked for.", field="facet")
    named = [facet_field(name) for name in fields if name != TELLING]
    if not fields:
        material = Material.of(listing, WITH_PARAMETER)
        return {str(field): _counted(field, listing, material) for field in WITH_PARAMETER}
    material = Material.of(listing, [*USUAL, Field(METADATA)] if TELLING in fields else named)
    if TELLING in fields:
        named = [*USUAL, *named, *_of_metadata(listing, material)]
    return {
        str(field): _counted(field, *_aside(field, listing, material))
        for field in dict.fromkeys([*WITH_PARAMETER, *named])
    }


def without_choice(scope: Scope, field: Field) -> Scope | None:
    """The scope without what was chosen of `field`; None where nothing was."""
    is_named = field == COLLECTION and not set(scope.visible_ids) <= set(scope.collection_ids)
    if not is_named and not chosen(scope.filter, field):
        return None
    ids = scope.visible_ids if is_named else scope.collection_ids
    return replace(scope, collection_ids=ids, filter=loosened(scope.filter, field))


def count_values(field: Field, listing: Listing, material: Material) -> Counts:
    """How many hits of the listing have each value."""
    if field.name != METADATA:  # one each, and all of them texts
        return Counter(
            {
                (str, value): n
                for value, n in Counter(material.texts(field, listing.found)).items()
                if value
            }
        )
    return Counter(
        key
        for values in material.values(field, listing.found)
        for key in {(type(value), value) for value in values}
    )


def in_scope(scope: Scope, field: Field, value: Value, facts: ScopeFacts) -> bool:
    """Whether `value` is among those that were chosen of `field`."""
    if field != COLLECTION:
        return is_chosen(scope.filter, field, value)
    slugs = {each.slug: pk for pk, each in facts.collections.items()}
    is_narrowed = not set(scope.visible_ids) <= set(scope.collection_ids)
    return is_narrowed and slugs.get(str(value)) in scope.collection_ids


def _aside(field: Field, listing: Listing, material: Material) -> tuple[Listing, Material, Scope]:
    """Where a facet is counted."""
    scope = without_choice(listing.scope, field)
    if scope is None:
        return listing, material, listing.scope
    is_same = scope.collection_ids == listing.scope.collection_ids
    wider = make_listing(
        to_count(listing.query),
        scope=scope,
        last=1,
        k=1,
        in_order=False,
        facts=listing.retrieved.facts if is_same else None,
    )
    return wider, Material.of(wider, [field]), listing.scope


def _counted(
    field: Field, listing: Listing, material: Material, asked: Scope | None = None
) -> tuple[Facet, ...]:
    scope = asked or listing.scope
    counts = count_values(field, listing, material)
    for value in chosen(scope.filter, field):
        # One that nothing has is shown too, or it could not be taken back.
        counts.setdefault((type(value), value), 0)
    order = sorted(counts.items(), key=lambda item: (-item[1], shown(item[0][1])))
    picked = [
        as_facet(
            field,
            value,
            count=count,
            selected=in_scope(scope, field, value, material.facts),
            facts=material.facts,
        )
        for (_, value), count in order
    ]
    kept = [each for place, each in enumerate(picked) if place < MOST_VALUES or each.selected]
    return tuple(
        sorted(kept, key=lambda each: each.value, reverse=True) if field == DATED else kept
    )


def _of_metadata(listing: Listing, material: Material) -> list[Field]:
    """What the collections chose, or else the most telling; and whatever something was
    picked of, by which the hits that are left may tell nothing."""
    picked = [each for each in chosen_fields(listing.scope.filter) if each.name == METADATA]
    if fields := _chosen_by_collections(listing):
        return [*fields, *picked]
    # By name, so that picking a value moves no other facet.
    return sorted({*_telling(material), *picked}, key=str)


def _chosen_by_collections(listing: Listing) -> list[Field]:
    """Those of all collections, each in its order; one that cannot be read is passed over."""
    fields: list[Field] = []
    for name in dict.fromkeys(
        name for each in listing.retrieved.facts.collections.values() for name in each.facets
    ):
        with suppress(InvalidInput):
            fields.append(_of_collection(name))
    return fields[:MOST_FACETS]


def _of_collection(name: str) -> Field:
    """What a collection chose is of the metadata, whatever fields of that name there are besides;
    the usual facets are meant by their names."""
    field = parse_field(name, at="facet")
    return field if field in USUAL or field.keys else Field(METADATA, (name,))


def _telling(material: Material) -> list[Field]:
    """Fields with a few values, each of several passages: not the same in all, and no numbers of
    the passages themselves. Of what day a document is, its own facet tells."""
    metadata = material.metadata
    names = Counter(name for said in metadata.values() for name in said if name not in DATE_KEYS)
    telling = []
    for name, present in names.items():
        if present * 3 < len(metadata):
            continue
        counts = Counter(value for said in metadata.values() for value in scalars_at(said, (name,)))
        if len(counts) in TELLING_VALUES and 2 * len(counts) <= counts.total():
            telling.append((-present, len(counts), name))
    return [Field(METADATA, (name,)) for _, _, name in sorted(telling)[:MOST_TELLING]]
