"""The values of a facet while one types: those of the hits, then others that there are."""

import json
import re
import unicodedata
from collections import Counter
from typing import Any

from common.errors import InvalidInput
from common.replicas import read_connection, reads_from_replica
from search.asked import SearchQuery
from search.facet_fields import (
    COLLECTION,
    DATED,
    LANGUAGE,
    LONGEST_VALUE,
    MEDIA_TYPE,
    ORIGIN,
    Material,
    Value,
    as_facet,
    facet_field,
    language_code,
    shown,
)
from search.facets import Counts, count_values, in_scope, without_choice
from search.filters import derived
from search.filters.fields import Field
from search.filters.jsonpath import elements_of
from search.listing import make_listing, to_count
from search.results import Facet, Mode, Scope
from search.retrieval.facts import ScopeFacts, scope_facts
from search.retrieval.scope import scope_conditions

MOST_LISTED = 100
#: So many passages in scope are looked at for values that no hit has, and so many values of theirs.
LOOKED_AT = 20_000
MOST_DISTINCT = 5_000


@reads_from_replica
def facet_values(
    query: str,
    *,
    scope: Scope,
    facet: str,
    prefix: str = "",
    mode: Mode = "hybrid",
    group: bool = False,
    limit: int = 20,
) -> tuple[Facet, ...]:
    """Values of `facet` that begin with `prefix`, or have a word that does, whatever the case and
    the accents; those that most hits have first.

    `count` is how many hits of `query` have it, without regard to what was chosen in this facet;
    then come values that only other passages in scope have, with 0. Without a query all values are
    counted by documents. Raises InvalidInput.
    """
    if not 1 <= limit <= MOST_LISTED:
        raise InvalidInput(f"limit may be 1 to {MOST_LISTED}.", field="limit")
    field = facet_field(facet)
    wider = without_choice(scope, field) or scope
    counts: Counts = Counter()
    facts = scope_facts(wider)
    if query.strip():
        asked = SearchQuery(query, mode=mode, group=group)
        listing = make_listing(
            to_count(asked), scope=wider, last=1, k=1, in_order=False, facts=facts
        )
        facts = listing.retrieved.facts
        counts = count_values(field, listing, Material.of(listing, [field]))
    begins = _beginning(prefix)

    def matching(counts: Counts) -> list[Facet]:
        order = sorted(counts.items(), key=lambda item: (-item[1], shown(item[0][1])))
        facets = (
            as_facet(
                field,
                value,
                count=count,
                selected=in_scope(scope, field, value, facts),
                facts=facts,
            )
            for (_, value), count in order
        )
        return [each for each in facets if begins.search(folded(each.label))]

    listed = matching(counts)
    if len(listed) < limit:
        others = _of_scope(field, wider, facts)
        unseen = Counter(
            {key: 0 if counts else n for key, n in others.items() if key not in counts}
        )
        listed += matching(unseen)
    return tuple(listed[:limit])


def folded(text: str) -> str:
    """Without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _beginning(prefix: str) -> re.Pattern[str]:
    """What finds it at the beginning of a word, signs at its own ends being no part of one."""
    return re.compile(rf"(?<!\w){re.escape(folded(prefix.strip()))}")


def _of_scope(field: Field, scope: Scope, facts: ScopeFacts) -> Counts:
    """How many documents have each value, as far as so many passages tell."""
    if field == COLLECTION:
        return Counter({(str, each.slug): each.chunks for each in facts.collections.values()})
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
        "elements": elements_of(field) if field.keys else "$",
        "looked_at": LOOKED_AT,
        "longest": LONGEST_VALUE,
        "distinct": MOST_DISTINCT,
    }
    counts: Counts = Counter()
    with read_connection().cursor() as cursor:
        cursor.execute(sql, parameters)
        for value, count in cursor.fetchall():
            read = _read(field, json.loads(value))
            if read != "":
                counts[type(read), read] += count
    return counts


_YEAR = f"to_jsonb(left(coalesce({derived.DATED_TEXT}, {derived.BROUGHT_TEXT}), 4))"
_METADATA = "jsonb_path_query(chunk.metadata, %(elements)s::jsonpath)"
_EXPRESSIONS: dict[Field, tuple[str, str]] = {
    MEDIA_TYPE: ("to_jsonb(chunk.media_type)", "chunk.media_type"),
    LANGUAGE: ("to_jsonb(chunk.language::text || ' ' || document.language)", "chunk.language"),
    ORIGIN: (f"to_jsonb({derived.ORIGIN})", "1"),
    DATED: (_YEAR, "1"),
}


def _read(field: Field, value: Any) -> Value:
    if field == LANGUAGE:
        configuration, _, code = value.partition(" ")
        return language_code(configuration, code)
    read: Value = value
    return read
