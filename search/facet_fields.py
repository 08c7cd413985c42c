"""Facets: which fields can be counted, and what values a passage has in them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf.locale import LANG_INFO

from common.errors import InvalidInput
from common.replicas import read_connection
from documents.languages import CONFIGURATIONS, FALLBACK
from search.filters import Comparison, to_text
from search.filters.fields import METADATA, Field, parse_field
from search.filters.tree import Operator
from search.listing import Listing
from search.results import Facet
from search.retrieval.arms import Candidate
from search.retrieval.facts import ScopeFacts
from search.told import Told

COLLECTION = Field("collection")
MEDIA_TYPE = Field("media_type")
LANGUAGE = Field("language")
ORIGIN = Field("origin")
DATED = Field("dated")
#: Facets of every search, in the order in which they are shown.
USUAL = (COLLECTION, MEDIA_TYPE, LANGUAGE, ORIGIN, DATED)
#: Those that a search has parameters of its own for.
WITH_PARAMETER = (COLLECTION, MEDIA_TYPE)
#: Longer ones are texts, and nobody picks a text from a list.
LONGEST_VALUE = 100

Value = str | int | float | bool

#: Of codes with one configuration the first is its name: “no” for nb and nn.
_CODES = {name: code for code, name in reversed(CONFIGURATIONS.items())} | {"norwegian": "no"}


def facet_field(name: str) -> Field:
    """The field of a facet; raises InvalidInput for one that cannot be counted."""
    field = parse_field(name, at="facet")
    if field.name != METADATA and field not in USUAL:
        usual = ", ".join(str(each) for each in USUAL)
        raise InvalidInput(
            f"“{name}” cannot be counted. Facets there are: {usual}, and any field of the"
            f" {METADATA}.",
            field="facet",
        )
    return field


@dataclass(frozen=True, slots=True)
class Material:
    """What the values of some passages are read from: by chunk its metadata and configuration, by
    document what it says of itself."""

    facts: ScopeFacts
    documents: Mapping[int, Told]
    languages: Mapping[int, str]
    metadata: Mapping[int, Mapping[str, Any]]

    @classmethod
    def of(cls, listing: Listing, fields: Iterable[Field]) -> "Material":
        """Read what these fields are counted by: two queries at most."""
        found, names = listing.found, {field.name for field in fields}
        rows = []
        if names & {LANGUAGE.name, METADATA}:
            with read_connection().cursor() as cursor:
                cursor.execute(
                    "SELECT id, language::text, metadata FROM documents_chunk WHERE id = ANY(%s)",
                    [[each.chunk_id for each in found]],
                )
                rows = cursor.fetchall()
        of_documents = names & {LANGUAGE.name, ORIGIN.name, DATED.name}
        return cls(
            facts=listing.retrieved.facts,
            documents=listing.told(each.document_id for each in found) if of_documents else {},
            languages={pk: language for pk, language, _ in rows},
            metadata={pk: json.loads(metadata) for pk, _, metadata in rows},
        )

    def values(self, field: Field, found: Iterable[Candidate]) -> Iterable[Sequence[Value]]:
        """Each candidate's values in `field`; a list stands for each of its elements."""
        if field.name == METADATA:
            return (scalars_at(self.metadata.get(each.chunk_id), field.keys) for each in found)
        return ([value] if value else [] for value in self.texts(field, found))

    def texts(self, field: Field, found: Iterable[Candidate]) -> Iterable[str]:
        """Of a field that is none of the metadata: one each, '' where it is not known."""
        collections, documents = self.facts.collections, self.documents
        match field.name:
            case "collection":
                slugs = {pk: each.slug for pk, each in collections.items()}
                return [slugs[each.collection_id] for each in found]
            case "media_type":
                return [each.media_type for each in found]
            case "language":
                return (self._language(each) for each in found)
        known = (documents.get(each.document_id) for each in found)
        if field == ORIGIN:
            return (document.origin if document else "" for document in known)
        return (document.dated[:4] if document else "" for document in known)

    def _language(self, candidate: Candidate) -> str:
        document = self.documents.get(candidate.document_id)
        configuration = self.languages.get(candidate.chunk_id, FALLBACK)
        return language_code(configuration, document.language if document else "")


def language_code(configuration: str, code: str) -> str:
    """The ISO code that a filter finds a passage by: its own where PostgreSQL has a stemmer, else
    its document's."""
    return code if configuration == FALLBACK else _CODES.get(configuration, code)


def scalars_at(said: Any, keys: Sequence[str]) -> list[Value]:
    """The scalars at a path; a list stands for each of its elements, as in filters."""
    for key in keys:
        if not isinstance(said, dict):
            return []
        said = said.get(key)
    return [
        value
        for value in (said if isinstance(said, list) else [said])
        if (isinstance(value, str) and 0 < len(value) <= LONGEST_VALUE)
        or isinstance(value, (bool, int, float))
    ]


def as_facet(field: Field, value: Value, *, count: int, selected: bool, facts: ScopeFacts) -> Facet:
    """A value as people and programs see it."""
    own = field in WITH_PARAMETER
    return Facet(
        value=shown(value),
        label=_label(field, value, facts),
        count=count,
        selected=selected,
        filter="" if own else to_text(Comparison(field, Operator.EQ, value)),
    )


def shown(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _label(field: Field, value: Value, facts: ScopeFacts) -> str:
    if field == COLLECTION:
        names = {each.slug: each.name for each in facts.collections.values()}
        return names.get(str(value), str(value))
    if field == LANGUAGE:
        return str(LANG_INFO.get(str(value), {}).get("name", value))
    return shown(value)
