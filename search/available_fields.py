"""Fields that a search in a scope can be filtered by: built-in ones and metadata found
in the newest documents.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.replicas import read_connection, reads_from_replica
from search.facets import BUILTIN_FACETS, MAX_VALUE_CHARACTERS, Value
from search.filters import Comparison, to_text
from search.filters.tree import (
    FIELDS,
    MAX_PATH_CHARACTERS,
    METADATA,
    Field,
    Kind,
    Operator,
    operators_of,
)
from search.results import Scope
from search.retrieval.statements import scope_conditions

#: Newest documents, and passages of each, sampled for metadata fields.
SAMPLED_DOCUMENTS = 500
SAMPLED_PASSAGES = 2
#: Deeper fields can be filtered by, but are not listed.
MAX_KEY_DEPTH = 3
MAX_FIELDS = 100
MAX_VALUES = 5

#: Description of each field, and an example condition.
FIELD_DESCRIPTIONS: Mapping[str, tuple[str, str]] = {
    "collection": ("Slug of the collection.", "collection=notes"),
    "document": ("The document's key: its path, or your own id.", "document$=.pdf"),
    "title": ("The document's title.", "title~guide"),
    "source": ("The path or address that it came from.", 'source^="handbook/"'),
    "url": ("Its address on the web.", "url^=https://example.org/"),
    "origin": ("The site of its address, or the folder that it came from.", "origin=handbook"),
    "media_type": ("What kind of file it is.", "media_type=application/pdf"),
    "language": ("ISO code of the passage's language.", "language=de,fr"),
    "dated": ("Its own date in its metadata, or else when it was brought.", "dated>=2024-05"),
    "created": ("When it was brought.", "created>=2026-11-20"),
    "updated": ("When it was changed last.", "updated>=2026-11-20"),
    "chunk": ("The passage's own key, where it was brought with one.", "chunk=note-7"),
    "chapter": ("The first heading above the passage.", "chapter=Installation"),
    "section": ("The second heading above the passage.", "section=Linux"),
    "heading": ("Any heading above the passage.", "heading~install"),
    "page": ("Page of the document, from 1.", "page<=3"),
}


@reads_from_replica
def available_fields(scope: Scope) -> list[dict[str, Any]]:
    """Built-in fields, then metadata fields of the scope, most frequent first: value kinds,
    operators and example conditions.

    `kinds`: text, number, boolean, time, language. `operators` are those of the JSON form,
    without negations. `values` are frequent ones, of metadata only. `share` of the sampled
    passages have the field; 1 for built-in fields.
    """
    builtin = [
        {
            "name": name,
            "description": FIELD_DESCRIPTIONS[name][0],
            "kinds": [_KINDS[kind]],
            "is_list": kind is Kind.TEXTS,
            "is_facet": Field(name) in BUILTIN_FACETS,
            "operators": [operator.value for operator in operators_of(Field(name))],
            "examples": [FIELD_DESCRIPTIONS[name][1]],
            "values": [],
            "share": 1.0,
        }
        for name, kind in FIELDS.items()
    ]
    conditions, parameters = scope_conditions(scope)
    sql = f"""
        SELECT chunk.metadata FROM (
            SELECT id FROM documents_document
            WHERE collection_id = ANY(%(collections)s) AND workspace_id = %(workspace)s
            ORDER BY id DESC LIMIT %(documents)s
        ) AS newest, LATERAL (
            SELECT chunk.metadata FROM documents_chunk AS chunk
            WHERE chunk.document_id = newest.id AND {conditions} LIMIT %(passages)s
        ) AS chunk
    """  # noqa: S608  # of constants and parameters
    parameters |= {"documents": SAMPLED_DOCUMENTS, "passages": SAMPLED_PASSAGES}
    with read_connection().cursor() as cursor:
        cursor.execute(sql, parameters)
        samples = [json.loads(metadata) for (metadata,) in cursor.fetchall()]
    return [*builtin, *_metadata_fields(samples)]


_KINDS = {
    Kind.TEXT: "text",
    Kind.TEXTS: "text",
    Kind.NUMBER: "number",
    Kind.TIME: "time",
    Kind.LANGUAGE: "language",
}
_TYPES = {str: "text", bool: "boolean", int: "number", float: "number"}


def _metadata_fields(samples: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Fields of the sampled metadata, most frequent first."""
    passages: Counter[tuple[str, ...]] = Counter()
    lists: set[tuple[str, ...]] = set()
    values: dict[tuple[str, ...], Counter[tuple[type, Value]]] = defaultdict(Counter)
    kinds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for sample in samples:
        for keys, value in _leaves(sample, ()):
            elements = value if isinstance(value, list) else [value]
            scalars = [each for each in elements if type(each) in _TYPES]
            passages[keys] += bool(scalars)
            if isinstance(value, list):
                lists.add(keys)
            for each in scalars:
                kinds[keys].add(_TYPES[type(each)])
                if not isinstance(each, str) or 0 < len(each) <= MAX_VALUE_CHARACTERS:
                    values[keys][type(each), each] += 1
    for keys, count in sorted(passages.items(), key=lambda item: (-item[1], item[0]))[:MAX_FIELDS]:
        which = Field(METADATA, keys)
        if not count or len(str(which)) > MAX_PATH_CHARACTERS:
            continue
        frequent = [value for (_, value), _ in values[keys].most_common(MAX_VALUES)]
        examples = []
        if frequent:
            first = frequent[0]
            examples.append(Comparison(which, Operator.EQ, first))
            if isinstance(first, str):
                word = first.split()[0] if first.split() else first
                examples.append(Comparison(which, Operator.CONTAINS, word))
            elif not isinstance(first, bool):
                examples.append(Comparison(which, Operator.GTE, first))
        yield {
            "name": str(which),
            "description": "Metadata of what was brought here.",
            "kinds": sorted(kinds[keys]),
            "is_list": keys in lists,
            "is_facet": True,
            "operators": [operator.value for operator in operators_of(which)],
            "examples": list(map(to_text, examples)),
            "values": frequent,
            "share": round(count / len(samples), 4),
        }


def _leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and len(keys) < MAX_KEY_DEPTH:
        for key, inner in value.items():
            if key:
                yield from _leaves(inner, (*keys, key))
    elif keys and not isinstance(value, Mapping):
        yield keys, value
