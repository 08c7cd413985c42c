"""Facets: which fields can be counted, counts over a result list (`count_facets`), values for
autocompletion (`facet_values`).
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.conf.locale import LANG_INFO
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.replicas import read_connection, reads_from_replica
from documents.languages import CONFIGURATIONS, FALLBACK
from reading.location import PAGE_LABEL
from search.filters import (
    Comparison,
    chosen_fields,
    chosen_values,
    is_chosen,
    to_text,
    without_field,
)
from search.filters import sql as filters_sql
from search.filters.sql import DATE_KEYS, elements_path
from search.filters.tree import METADATA, Field, Operator, parse_field
from search.query_options import MAX_FACETS, FacetOptions, SearchQuery
from search.ranked_results import RankedResults, rank_results
from search.results import Facet, Scope
from search.retrieval.scope_facts import ScopeFacts, read_scope_facts
from search.retrieval.statements import scope_conditions

COLLECTION = Field("collection")
MEDIA_TYPE = Field("media_type")
LANGUAGE = Field("language")
ORIGIN = Field("origin")
DATED = Field("dated")
#: Facets of every search, in the order in which they are shown.
BUILTIN_FACETS = (COLLECTION, MEDIA_TYPE, LANGUAGE, ORIGIN, DATED)
#: Facets that have request parameters of their own.
PARAMETER_FACETS = (COLLECTION, MEDIA_TYPE)
#: Longer values are texts, not facet values.
MAX_VALUE_CHARACTERS = 100

Value = str | int | float | bool
#: With its type, because 1, 1.0 and True are one key to Python and none to a filter.
Counts = Counter[tuple[type, Value]]

#: Of codes with one configuration the first is its name: “no” for nb and nn.
_CODES = {name: code for code, name in reversed(CONFIGURATIONS.items())} | {"norwegian": "no"}


def facet_field(name: str) -> Field:
    """The field of a facet; raises InvalidInput for one that cannot be counted."""
    field = parse_field(name, at="facet")
    if field.name != METADATA and field not in BUILTIN_FACETS:
        usual = ", ".join(str(each) for each in BUILTIN_FACETS)
        raise InvalidInput(
            gettext(
                "“{name}” is not a facet. The facets are {names}, and any field of the {metadata}."
            ).format(name=name, names=usual, metadata=METADATA),
            field="facet",
        )
    return field


def hit_values(field: Field, results: RankedResults) -> Iterable[Sequence[Value]]:
    """Each hit's values in `field`; a list counts as each of its elements, and what is unknown as
    none.
    """
    hits = results.hits
    if field.name == METADATA:
        metadata = results.chunk_info()
        return (scalars_at(metadata.get(hit.chunk_id, ("", {}))[1], field.keys) for hit in hits)
    texts: Iterable[str]
    match field.name:
        case "collection":
            slugs = {pk: each.slug for pk, each in results.retrieved.facts.collections.items()}
            texts = (slugs[hit.collection_id] for hit in hits)
        case "media_type":
            texts = (hit.media_type for hit in hits)
        case name:
            documents = results.document_info(hit.document_id for hit in hits)
            known = [
                (hit, documents[hit.document_id]) for hit in hits if hit.document_id in documents
            ]
            if name == "origin":
                texts = (document.origin for _, document in known)
            elif name == "dated":
                texts = (document.dated[:4] for _, document in known)
            else:
                chunks = results.chunk_info()
                texts = (
                    language_code(chunks.get(hit.chunk_id, (FALLBACK, {}))[0], document.language)
                    for hit, document in known
                )
    return ([text] for text in texts if text)


def language_code(configuration: str, code: str) -> str:
    """ISO code by which a filter finds a passage: its own where PostgreSQL has a
    stemmer, else its document's.
    """
    return code if configuration == FALLBACK else _CODES.get(configuration, code)


def scalars_at(data: Any, keys: Sequence[str]) -> list[Value]:
    """Scalars at a path; a list counts as each of its elements, as in filters."""
    for key in keys:
        if not isinstance(data, dict):
            return []
        data = data.get(key)
    return [
        value
        for value in (data if isinstance(data, list) else [data])
        if (isinstance(value, str) and 0 < len(value) <= MAX_VALUE_CHARACTERS)
        or isinstance(value, (bool, int, float))
    ]


def make_facets(field: Field, counts: Counts, *, scope: Scope, facts: ScopeFacts) -> list[Facet]:
    """Facet values with label, count and filter, most frequent first."""
    names = {each.slug: each.name for each in facts.collections.values()}
    facets = []
    for (_, value), count in sorted(
        counts.items(), key=lambda item: (-item[1], value_text(item[0][1]))
    ):
        label = text = value_text(value)
        if field == COLLECTION:
            label = names.get(text, text)
        elif field == LANGUAGE:
            label = gettext(str(LANG_INFO.get(text, {}).get("name", text)))
        own = field in PARAMETER_FACETS
        facets.append(
            Facet(
                value=text,
                label=label,
                count=count,
                selected=is_selected(scope, field, value, facts),
                filter="" if own else to_text(Comparison(field, Operator.EQ, value)),
            )
        )
    return facets


def value_text(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


MAX_VALUES = 50
#: Selects the built-in facets and those that the collections define, or else the most selective
#: metadata fields.
AUTO_FACETS = "*"
MAX_AUTO_FACETS = 3
AUTO_FACET_VALUES = range(2, 21)


def count_facets(results: RankedResults, *, fields: Sequence[str]) -> dict[str, tuple[Facet, ...]]:
    """Values by facet, most frequent first, years newest first: always of `collection` and
    `media_type`, and of `fields`.

    A facet in `fields`, or included by `*`, is counted without the values chosen in it. Raises
    InvalidInput for a field that cannot be counted.
    """
    if len(fields) > MAX_FACETS:
        raise InvalidInput(
            gettext("At most {limit} facets can be counted at once. Leave some out.").format(
                limit=MAX_FACETS
            ),
            field="facet",
        )
    named = [facet_field(name) for name in fields if name != AUTO_FACETS]
    if not fields:
        return {str(field): _count_facet(field, results) for field in PARAMETER_FACETS}
    if AUTO_FACETS in fields:
        named = [*BUILTIN_FACETS, *named, *_metadata_facets(results)]
    counted = {}
    for field in dict.fromkeys([*PARAMETER_FACETS, *named]):
        wider, scope = results, without_choice(results.scope, field)
        if scope is not None:
            is_same = scope.collection_ids == results.scope.collection_ids
            facts = results.retrieved.facts if is_same else None
            wider = count_hits(results.query, scope=scope, facts=facts)
        counted[str(field)] = _count_facet(field, wider, results.scope)
    return counted


def count_hits(query: SearchQuery, *, scope: Scope, facts: ScopeFacts | None) -> RankedResults:
    """The hits of a query to be counted: in any order, neither reranked nor diversified."""
    query = query.model_copy(update={"rerank": False, "min_rerank": None, "diversify": False})
    return rank_results(query, scope=scope, last=1, k=1, in_order=False, facts=facts)


def without_choice(scope: Scope, field: Field) -> Scope | None:
    """The scope without the values chosen of `field`; None where none were."""
    is_named = field == COLLECTION and not set(scope.visible_ids) <= set(scope.collection_ids)
    if not is_named and not chosen_values(scope.filter, field):
        return None
    ids = scope.visible_ids if is_named else scope.collection_ids
    return replace(scope, collection_ids=ids, filter=without_field(scope.filter, field))


def count_values(field: Field, results: RankedResults) -> Counts:
    """Number of hits with each value."""
    return Counter(
        key
        for values in hit_values(field, results)
        for key in {(type(value), value) for value in values}
    )


def is_selected(scope: Scope, field: Field, value: Value, facts: ScopeFacts) -> bool:
    """Whether `value` is among those chosen of `field`."""
    if field != COLLECTION:
        return is_chosen(scope.filter, field, value)
    slugs = {each.slug: pk for pk, each in facts.collections.items()}
    is_narrowed = not set(scope.visible_ids) <= set(scope.collection_ids)
    return is_narrowed and slugs.get(str(value)) in scope.collection_ids


def _count_facet(
    field: Field, results: RankedResults, selection_scope: Scope | None = None
) -> tuple[Facet, ...]:
    scope, facts = selection_scope or results.scope, results.retrieved.facts
    counts = count_values(field, results)
    for value in chosen_values(scope.filter, field):
        # One that nothing has is shown too, or it could not be taken back.
        counts.setdefault((type(value), value), 0)
    picked = make_facets(field, counts, scope=scope, facts=facts)
    kept = [each for place, each in enumerate(picked) if place < MAX_VALUES or each.selected]
    return tuple(
        sorted(kept, key=lambda each: each.value, reverse=True) if field == DATED else kept
    )


def _metadata_facets(results: RankedResults) -> list[Field]:
    """Facets that the collections define, in their order and without invalid names, or else the
    most selective ones; plus those with chosen values.
    """
    picked = [each for each in chosen_fields(results.scope.filter) if each.name == METADATA]
    defined: list[Field] = []
    collections = results.retrieved.facts.collections.values()
    for name in dict.fromkeys(name for each in collections for name in each.facets):
        with suppress(InvalidInput):
            # They are metadata fields, except the names of built-in facets.
            field = parse_field(name, at="facet")
            is_facet = field in BUILTIN_FACETS or field.keys
            defined.append(field if is_facet else Field(METADATA, (name,)))
    if defined:
        return [*defined[:MAX_FACETS], *picked]
    # Metadata fields with few distinct values that many passages have. Date fields are left to
    # their own facet.
    metadata = [each for _, each in results.chunk_info().values()]
    ignored = {*DATE_KEYS, PAGE_LABEL}
    names = Counter(name for each in metadata for name in each if name not in ignored)
    selective = []
    for name, present in names.items():
        if present * 3 < len(metadata):
            continue
        counts = Counter(value for each in metadata for value in scalars_at(each, (name,)))
        if len(counts) in AUTO_FACET_VALUES and 2 * len(counts) <= counts.total():
            selective.append((-present, len(counts), name))
    auto_facets = [Field(METADATA, (name,)) for _, _, name in sorted(selective)[:MAX_AUTO_FACETS]]
    # By name, so that picking a value moves no other facet.
    return sorted({*auto_facets, *picked}, key=str)


#: Passages in scope sampled for values that no hit has, and most distinct values of these.
MAX_SAMPLED_PASSAGES = 20_000
MAX_DISTINCT_VALUES = 5_000


@reads_from_replica
def facet_values(query: str, *, scope: Scope, **options: Any) -> tuple[Facet, ...]:
    """Values of a facet in which a word begins with `prefix`, ignoring case and accents; most
    frequent first. `options` are others of FacetOptions.

    `count` is the number of hits of `query` with the value, whatever is chosen in this facet;
    then values of other passages in scope, with 0. Without a query, documents are counted.
    Raises InvalidInput.
    """
    asked = FacetOptions(q=query, **options)
    field = facet_field(asked.facet)
    wider = without_choice(scope, field) or scope
    counts: Counts = Counter()
    facts = read_scope_facts(wider)
    if query.strip():
        hits_of = SearchQuery(q=query, mode=asked.mode, group=asked.group)
        listing = count_hits(hits_of, scope=wider, facts=facts)
        facts = listing.retrieved.facts
        counts = count_values(field, listing)
    # Pattern that matches the prefix at the start of a word.
    begins = re.compile(rf"(?<!\w){re.escape(fold(asked.prefix.strip()))}")
    facets = make_facets(field, counts, scope=scope, facts=facts)
    listed = [each for each in facets if begins.search(fold(each.label))]
    if len(listed) < asked.limit:
        others = _scope_counts(field, wider, facts)
        unseen = Counter(
            {key: 0 if counts else n for key, n in others.items() if key not in counts}
        )
        facets = make_facets(field, unseen, scope=scope, facts=facts)
        listed += [each for each in facets if begins.search(fold(each.label))]
    return tuple(listed[: asked.limit])


def fold(text: str) -> str:
    """Text without case and accents, for comparison."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _scope_counts(field: Field, scope: Scope, facts: ScopeFacts) -> Counts:
    """Number of documents with each value, from a sample of passages."""
    if field == COLLECTION:
        chunks = zip(sorted(facts.collections), facts.state.chunks, strict=True)
        return Counter({(str, facts.collections[pk].slug): count for pk, count in chunks})
    conditions, parameters = scope_conditions(scope)
    expression, columns = _EXPRESSIONS.get(field, (_METADATA, "chunk.metadata"))
    sql = f"""
        SELECT value, count(DISTINCT document_id) FROM (
            SELECT {expression} AS value, chunk.document_id
            FROM (SELECT chunk.document_id, {columns} FROM documents_chunk AS chunk
                  WHERE {conditions} LIMIT %(looked_at)s) AS chunk
            JOIN documents_document AS document ON document.id = chunk.document_id
        ) AS had WHERE jsonb_typeof(value) IN ('string', 'number', 'boolean')
            AND length(value #>> '{{}}') BETWEEN 1 AND %(longest)s
        GROUP BY value ORDER BY 2 DESC LIMIT %(distinct)s
    """  # noqa: S608  # of constants and parameters
    parameters |= {
        "elements": elements_path(field) if field.keys else "$",
        "looked_at": MAX_SAMPLED_PASSAGES,
        "longest": MAX_VALUE_CHARACTERS,
        "distinct": MAX_DISTINCT_VALUES,
    }
    counts: Counts = Counter()
    with read_connection().cursor() as cursor:
        cursor.execute(sql, parameters)
        for value, count in cursor.fetchall():
            read: Value = json.loads(value)
            if field == LANGUAGE:
                configuration, _, code = str(read).partition(" ")
                read = language_code(configuration, code)
            if read != "":
                counts[type(read), read] += count
    return counts


_YEAR = (
    f"to_jsonb(left(coalesce({filters_sql.DOCUMENT_DATE_SQL}, {filters_sql.CREATED_DAY_SQL}), 4))"
)
_METADATA = "jsonb_path_query(chunk.metadata, %(elements)s::jsonpath)"
_EXPRESSIONS: dict[Field, tuple[str, str]] = {
    MEDIA_TYPE: ("to_jsonb(chunk.media_type)", "chunk.media_type"),
    LANGUAGE: ("to_jsonb(chunk.language::text || ' ' || document.language)", "chunk.language"),
    ORIGIN: (f"to_jsonb({filters_sql.ORIGIN_SQL})", "1"),
    DATED: (_YEAR, "1"),
}
