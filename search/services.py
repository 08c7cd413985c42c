"""The search service: `search` takes a question and a scope and returns one page of hits. And the
searches that a person keeps by name (`save_search`)."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.formats import number_format
from django.utils.text import get_text_list
from django.utils.translation import gettext, ngettext

from accounts.models import Workspace
from common import features
from common.errors import Conflict, InvalidInput
from common.metrics import SEARCH_STAGE_SECONDS
from common.replicas import reads_from_replica
from documents.languages import language_name
from documents.question_language import (
    language_of_script,
    language_of_small_words,
    question_language,
)
from inference.model_languages import EVERY, is_made_for
from search.facets import count_facets
from search.models import SavedSearch
from search.query_options import MAX_K, MAX_OFFSET, SearchQuery
from search.ranked_results import RankedResults, build_page, rank_results, sort_hits
from search.ranking import has_reranker
from search.results import Scope, SearchResult
from search.retrieval.scope_facts import ScopeFacts

#: Collections that a note names.
MAX_NAMED = 5


def by_words_note(facts: ScopeFacts) -> str:
    """Why meaning did not take part in a search, or not everywhere; empty where it did."""
    if not features.is_on("vectors"):
        return gettext(
            "Found by words only: vectors are switched off on this site (RAGSITE_VECTORS)."
        )
    without = [each.name for each in facts.collections.values() if not each.vectors]
    if not without:
        return ""
    named = ", ".join(without[:MAX_NAMED]) + (", …" if len(without) > MAX_NAMED else "")
    return gettext("Found by words only, because their vectors are switched off: {names}.").format(
        names=named
    )


def search_notes(results: RankedResults, *, hit_count: int) -> tuple[str, ...]:
    """Notes for the reader of a result page with `hit_count` hits in total."""
    query, retrieved, ranking = results.parsed, results.retrieved, results.ranking
    notes = []
    if hit_count < len(results.hits):
        notes.append(
            (
                gettext(
                    "Sorted by title: the {hit_count} best of {found} hits. The others fit less"
                    " than half as well as the best."
                )
                if results.query.sort == "title"
                else gettext(
                    "Sorted by date: the {hit_count} best of {found} hits. The others fit less"
                    " than half as well as the best."
                )
            ).format(
                hit_count=hit_count,
                found=number_format(len(results.hits), force_grouping=True),
            )
        )
    if results.query.mode != "lexical" and (by_words := by_words_note(retrieved.facts)):
        notes.append(by_words)
    if query.named:
        notes.append(
            gettext(
                "In a sentence, quotation marks only name something. To find nothing but"
                " passages that hold it word for word, write +“{named}”."
            ).format(named=query.named[0])
        )
    if "vector" in retrieved.degraded:
        partly = any(report.name == "vector" for report in retrieved.arms)
        notes.append(
            gettext(
                "Search by meaning reaches only some of the passages just now: a model"
                " does not answer."
            )
            if partly
            else gettext(
                "Search by meaning is out of order just now: these passages were found"
                " by their words."
            )
        )
    if results.query.rerank and results.hits and not ranking.reranked and not ranking.degraded:
        notes.append(
            gettext(
                "Not reranked: the reranker was not made for the language of the question, or of"
                " these passages."
            )
        )
    if "rerank" in ranking.degraded:
        notes.append(
            gettext(
                "The reranker does not answer just now: the order is that of words and"
                " meaning alone."
            )
        )
    methods = {report.name: report.method for report in retrieved.arms}
    if methods.get("lexical") == "trigram":
        notes.append(
            gettext("No passage holds these words. This was searched for: {text}").format(
                text=query.text
            )
        )
    elif retrieved.candidates and "lexical" in methods and not retrieved.listed("lexical"):
        notes.append(gettext("No passage holds these words: these were found by meaning."))
    if note := _language_note(results):
        notes.append(note)
    return tuple(notes)


def _language_note(results: RankedResults) -> str:
    """That the question is in a language which the model of some collection was not made for, with
    the cure; empty where it is not."""
    query, facts = results.query, results.retrieved.facts
    if query.mode == "lexical" or query.vector is not None:
        return ""
    made_for = {space.pk: space.languages for space in facts.spaces}
    limited = {languages for languages in made_for.values() if languages and EVERY not in languages}
    if not limited:
        return ""
    language = language_of_script(query.q) or language_of_small_words(query.q)
    if not language or not all(is_made_for(languages, language) for languages in limited):
        language = question_language(query.q)  # surer, and may load a model
    lacking = [
        each
        for each in facts.collections.values()
        if not is_made_for(made_for.get(each.space_id, frozenset()), language)
    ]
    if not lacking:
        return ""
    from documents.fitting_models import fitting_model  # noqa: PLC0415
    from documents.services.model_languages import (  # noqa: PLC0415 (loads parsers and the broker)
        move_advice,
    )

    spaces = [space for space in facts.spaces if space.pk in {each.space_id for each in lacking}]
    told = ngettext(
        "The question seems to be in %(language)s, which %(model)s, the model of “%(collection)s”,"
        " was not made for: by meaning hardly a passage is found.",
        "The question seems to be in %(language)s, which %(model)s, the model of %(count)s"
        " collections, was not made for: by meaning hardly a passage is found.",
        len(lacking),
    ) % {
        "language": language_name(language),
        "model": get_text_list([space.model_name for space in spaces], gettext("and")),
        "collection": lacking[0].name,
        "count": len(lacking),
    }
    wanted = {language}.union(*(made_for[space.pk] for space in spaces))
    return f"{told} {move_advice(fitting_model(wanted), [each.slug for each in lacking])}"


@reads_from_replica
def search(
    query: str | SearchQuery,
    *,
    scope: Scope,
    k: int = 10,
    offset: int = 0,
    facets: Sequence[str] = (),
    snippets: bool = True,
    rows: bool | None = None,
    **options: Any,
) -> SearchResult:
    """Ranks the passages in `scope` for `query` and returns one page of `k` hits (documents, where
    they are grouped).

    `options` are those of `SearchQuery` by name. `facets`: fields to count; `*` is language,
    origin, date and what the collections define, or else the most selective metadata.
    `snippets=False` skips highlighting, `rows=False` the rows of tables that fit best; these come
    by default with snippets.

    Raises InvalidInput, and EmbedderUnavailable for mode `vector` without a working model; mode
    `hybrid` then searches lexically and says so in `degraded`.
    """
    started = perf_counter()
    asked = query if isinstance(query, SearchQuery) else SearchQuery(q=query, **options)
    for field, number, least, most in (("k", k, 1, MAX_K), ("offset", offset, 0, MAX_OFFSET)):
        if not least <= number <= most:
            raise InvalidInput(
                gettext("{field} may be {least} to {most}.").format(
                    field=field, least=least, most=most
                ),
                field=field,
            )
    listing = rank_results(asked, scope=scope, last=offset + k, k=k, is_counted=bool(facets))
    order = sort_hits(listing)
    counted = count_facets(listing, fields=facets)
    page = order[offset : offset + k]
    hits = build_page(
        listing,
        page,
        first_rank=offset + 1,
        snippets=snippets,
        rows=snippets if rows is None else rows,
    )
    total = round((perf_counter() - started) * 1000, 3)
    retrieved, ranking = listing.retrieved, listing.ranking
    timings = {**retrieved.timings, "rerank": ranking.milliseconds, "total": total}
    for stage, milliseconds in timings.items():
        SEARCH_STAGE_SECONDS.labels(stage).observe(milliseconds / 1000)
    return SearchResult(
        query=asked.q,
        mode=asked.mode,
        hits=hits,
        total=len(order),
        is_cut=listing.is_cut,
        offset=offset,
        k=k,
        fusion=listing.fusion,
        arms=listing.arms,
        facets=counted,
        timings=timings,
        degraded=(*retrieved.degraded, *ranking.degraded),
        notes=search_notes(listing, hit_count=len(order)),
        filter=scope.filter,
        reranker=ranking.reranker,
        reranked=ranking.reranked,
        suggestion=listing.suggestion,
        backgrounds=retrieved.backgrounds,
        sort=asked.sort,
        can_rerank=has_reranker(retrieved.facts),
    )


MAX_NAME_CHARACTERS = 100
MAX_SAVED = 200


def save_search(*, user: Any, workspace: Workspace, name: str, parameters: str) -> SavedSearch:
    """Saves a query string of the search page under a name.

    Raises InvalidInput for an invalid name or empty parameters, Conflict for a name in use or a
    full list.
    """
    if not parameters:
        raise InvalidInput(
            gettext("There is no search to save yet. Search first."), field="parameters"
        )
    if SavedSearch.objects.filter(user=user, workspace=workspace).count() >= MAX_SAVED:
        raise Conflict(
            gettext("{limit} searches are saved, which is the most. Delete one first.").format(
                limit=MAX_SAVED
            )
        )
    row = SavedSearch(
        user=user, workspace=workspace, name=checked_name(name), parameters=parameters
    )
    return _save(row)


def update_saved_search(
    *, saved: SavedSearch, name: str | None = None, parameters: str | None = None
) -> SavedSearch:
    """Changes name or parameters; None leaves them. Raises like `save_search`."""
    if name is not None:
        saved.name = checked_name(name)
    if parameters is not None:
        if not parameters:
            raise InvalidInput(gettext("A saved search needs parameters."), field="parameters")
        saved.parameters = parameters
    return _save(saved)


def checked_name(name: str) -> str:
    """The name on one line. Raises InvalidInput for an empty or overlong one."""
    found = " ".join(name.replace("\0", " ").split())
    if not 0 < len(found) <= MAX_NAME_CHARACTERS:
        raise InvalidInput(
            gettext("A name has 1 to {limit} characters.").format(limit=MAX_NAME_CHARACTERS),
            field="name",
        )
    return found


def _save(row: SavedSearch) -> SavedSearch:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict(
            gettext(
                "You have a saved search “{name}” already. Choose another name, or"
                " delete that one first."
            ).format(name=row.name)
        ) from error
    return row
