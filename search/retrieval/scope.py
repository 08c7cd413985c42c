"""A search's scope as SQL conditions, the same for every arm."""

from typing import Any

from documents.languages import configuration
from search.filters import compile_filter
from search.query import Query
from search.results import Scope

Parameters = dict[str, Any]


def scope_conditions(scope: Scope, query: Query | None = None) -> tuple[str, Parameters]:
    """Conditions on `documents_chunk AS chunk`, with their parameters.

    Workspace and access come first and cannot be left out; whatever the filter says stands beside
    them in brackets of its own. A phrase or an exclusion of the query is a condition too, because
    it holds for every arm.
    """
    conditions = [
        "chunk.workspace_id = %(workspace)s",
        "chunk.collection_id = ANY(%(collections)s::bigint[])",
    ]
    if scope.versions == "current":
        conditions.append("chunk.is_current")
    parameters: Parameters = {
        "workspace": scope.workspace_id,
        "collections": list(scope.collection_ids),
    }
    if scope.principals is not None:
        conditions.append("(chunk.access IS NULL OR chunk.access && %(principals)s::varchar[])")
        parameters["principals"] = list(scope.principals)
    if scope.but:
        conditions.append("chunk.document_id <> ALL(%(but)s::bigint[])")
        parameters["but"] = list(scope.but)
    if scope.is_filtered:
        condition, values = compile_filter(scope.filter, configuration=configuration)
        conditions.append(f"({condition})")
        parameters |= values
    for number, phrase in enumerate(query.phrases if query else ()):
        conditions.append(
            f"chunk.search_vector @@ ragsite_phrase(chunk.language, %(phrase_{number})s)"
        )
        parameters[f"phrase_{number}"] = phrase
    for number, words in enumerate(query.excluded if query else ()):
        conditions.append(
            f"NOT chunk.search_vector @@ ragsite_phrase(chunk.language, %(excluded_{number})s)"
        )
        parameters[f"excluded_{number}"] = words
    return " AND ".join(conditions), parameters
