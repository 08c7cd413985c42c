"""Ask the questions of a set, of its own corpus or of a live collection; measure the answers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from django.utils.text import slugify

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from common.fusion_options import Method
from documents.ingestion.sources import Source, text_source
from documents.languages import detect_language
from documents.models import Collection, Document
from documents.services import (
    chunk_count,
    delete_collection,
    get_or_create_collection,
    ingest_inline,
)
from search.asked import MAX_K
from search.evaluation.dataset import Dataset, Entry
from search.evaluation.measures import latencies, measure
from search.evaluation.progress import Progress, nobody_watches
from search.results import Mode, Scope
from search.services import search, site_scope

#: Nobody is a member, so that no search ever finds what is only there to be measured.
WORKSPACE = "evaluation"

#: Documents that together tell the language of those too short to tell it.
LANGUAGE_SAMPLE = 50


@dataclass(frozen=True, slots=True)
class Report:
    """What one set showed: measures by mode, and how long ingestion took, if there was one."""

    dataset: str
    documents: int
    chunks: int
    queries: int
    seconds_to_ingest: float | None
    modes: dict[str, dict[str, float]]


def evaluate(
    dataset: Dataset,
    *,
    modes: Sequence[Mode],
    k: int = 10,
    fusion: Method | None = None,
    rerank: bool | None = None,
    scope_field: str = "",
    keep: bool = False,
    on_progress: Progress = nobody_watches,
) -> Report:
    """Measure `modes` on `dataset`, with its corpus in a collection of its own."""
    with ingested(dataset, keep=keep, on_progress=on_progress) as (collection, seconds):
        return evaluate_collection(
            collection,
            dataset,
            modes=modes,
            k=k,
            fusion=fusion,
            rerank=rerank,
            scope_field=scope_field,
            seconds_to_ingest=round(seconds, 2),
            on_progress=on_progress,
        )


def evaluate_collection(
    collection: Collection,
    dataset: Dataset,
    *,
    modes: Sequence[Mode],
    k: int = 10,
    fusion: Method | None = None,
    rerank: bool | None = None,
    scope_field: str = "",
    seconds_to_ingest: float | None = None,
    on_progress: Progress = nobody_watches,
) -> Report:
    """Measure `modes` on the questions of `dataset`, asked of `collection`.

    With `scope_field` a question is asked only of documents whose field equals its own.
    """
    results: dict[str, dict[str, float]] = {}
    for mode in modes:
        answers = ask_all(
            collection,
            dataset,
            mode=mode,
            fusion=fusion,
            rerank=rerank,
            scope_field=scope_field,
            on_progress=on_progress,
        )
        measured = measure(answers.rankings, dataset.judgements, k=k)
        results[mode] = {**measured, **latencies(answers.milliseconds)}
    return Report(
        dataset=dataset.name,
        documents=Document.objects.filter(collection=collection).current().count(),
        chunks=chunk_count(collection=collection),
        queries=len(dataset.queries),
        seconds_to_ingest=seconds_to_ingest,
        modes=results,
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """What each question found: documents' keys, best first, by query id; how long each took, and
    what did not work."""

    rankings: dict[str, list[str]]
    milliseconds: list[float]
    degraded: tuple[str, ...]


def ask_all(
    collection: Collection,
    dataset: Dataset,
    *,
    mode: Mode,
    fusion: Method | None = None,
    rerank: bool | None = None,
    scope_field: str = "",
    on_progress: Progress = nobody_watches,
) -> Answers:
    """Ask every question of `dataset` of `collection`, one after the other."""
    rankings: dict[str, list[str]] = {}
    times: list[float] = []
    degraded: set[str] = set()
    for number, query in enumerate(dataset.queries, start=1):
        scope = scope_of(collection, query, scope_field)
        result = search(
            query.text,
            scope=scope,
            mode=mode,
            k=MAX_K,
            fusion=fusion,
            rerank=rerank,
            group=True,
            snippets=False,
        )
        rankings[query.id] = [hit.document_key for hit in result.hits]
        times.append(result.milliseconds)
        degraded.update(result.degraded)
        on_progress(mode, number, len(dataset.queries))
    return Answers(rankings, times, tuple(sorted(degraded)))


def scope_of(collection: Collection, query: Entry, scope_field: str = "") -> Scope:
    """Where a question is asked."""
    fields = query.fields if scope_field else {}
    return site_scope(
        workspace=collection.workspace,
        collections=[collection.slug],
        metadata={scope_field: fields[scope_field]} if scope_field in fields else {},
    )


@contextmanager
def ingested(
    dataset: Dataset,
    *,
    keep: bool = False,
    on_progress: Progress = nobody_watches,
) -> Iterator[tuple[Collection, float]]:
    """The set's corpus as a collection, and the seconds that took.

    It is removed afterwards unless `keep`; a kept one is used again, so that only what changed is
    embedded.
    """
    workspace: Workspace = get_or_create_workspace(slug=WORKSPACE)
    collection = get_or_create_collection(
        workspace=workspace, slug=slugify(dataset.name.replace("_", "-"))[:63] or "set"
    )
    started = perf_counter()
    try:
        ingest_inline(
            collection=collection,
            sources=_sources(dataset),
            source=dataset.name,
            on_progress=lambda run: on_progress("ingest", run.settled, len(dataset.corpus)),
        )
        yield collection, perf_counter() - started
    finally:
        if not keep:
            delete_collection(collection=collection)


def _sources(dataset: Dataset) -> Iterator[Source]:
    """Title and text as one document each, with the other fields as metadata.

    A document that has a title only is its title.
    """
    sample = " ".join(entry.text for entry in islice(dataset.corpus, LANGUAGE_SAMPLE))
    usual = detect_language(sample)
    for entry in dataset.corpus:
        declared = {
            "title": entry.title if entry.text.strip() else "",
            "language": detect_language(f"{entry.title}\n{entry.text}", default=usual),
            "metadata": entry.fields,
            "file_name": "document.txt",
        }
        text = entry.text if entry.text.strip() else entry.title
        yield text_source(entry.id, text, **{name: said for name, said in declared.items() if said})
