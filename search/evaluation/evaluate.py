"""Asks the questions of an evaluation set and measures the rankings (nDCG, recall,
MRR). Begin with `evaluate_collection`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, product
from math import log2
from time import perf_counter
from typing import Any

import ir_measures
import numpy as np
from django.utils.text import slugify
from ir_measures import RR, R, Success, nDCG

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
from search.evaluation.datasets import Dataset, Entry
from search.models import EvaluatedQuestion
from search.query_options import MAX_K, site_scope
from search.results import Mode, Scope
from search.services import search

#: Called with the step, the number done, and the total.
Progress = Callable[[str, int, int], Any]


def ignore_progress(what: str, done: int, total: int) -> None:
    """The default callback: progress is not reported."""


def measure(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], *, k: int
) -> dict[str, float]:
    """nDCG@k, recall@5, @10, @100, hit@1, @3, all@10 and MRR over all judged queries; a query
    without results counts as zero. `rankings` are document ids, best first, by query id.

    hit@n is the share of queries with a relevant document in the top n, all@10 the share with
    all relevant documents in the top ten.
    """
    measures = {
        f"ndcg@{k}": nDCG @ k,
        "recall@5": R @ 5,
        "recall@10": R @ 10,
        "recall@100": R @ 100,
        "hit@1": Success @ 1,
        "hit@3": Success @ 3,
        "mrr": RR,
    }
    values = ir_measures.calc_aggregate(list(measures.values()), *_trec_rows(rankings, judgements))
    measured = {name: round(float(values[value]), 4) for name, value in measures.items()}
    complete = [
        {document_id for document_id, grade in judgements[query_id].items() if grade > 0}
        <= set(ranking[:10])
        for query_id, ranking in rankings.items()
        if any(grade > 0 for grade in judgements.get(query_id, {}).values())
    ]
    all_found = sum(complete) / len(complete) if complete else 0.0
    return {**measured, "all@10": round(all_found, 4)}


def measure_questions(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], *, k: int
) -> dict[str, EvaluatedQuestion]:
    """Unsaved measures of each question, by query id: nDCG@k and recall@k (0..1), rank of the first
    relevant document, number of relevant documents, and how many of them are in the top k.
    """
    gains = {
        each.query_id: float(each.value)
        for each in ir_measures.iter_calc([nDCG @ k], *_trec_rows(rankings, judgements))
    }
    measured = {}
    for query_id, ranking in rankings.items():
        good = {key for key, grade in judgements[query_id].items() if grade > 0}
        places = [place for place, key in enumerate(ranking, start=1) if key in good]
        found = sum(place <= k for place in places)
        measured[query_id] = EvaluatedQuestion(
            ndcg=gains.get(query_id, 0.0),
            recall=found / len(good) if good else 0.0,
            first_rank=places[0] if places else None,
            good=len(good),
            found=found,
        )
    return measured


def _trec_rows(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]]
) -> tuple[list[ir_measures.Qrel], list[ir_measures.ScoredDoc]]:
    """Judgements and rankings as ir_measures takes them."""
    qrels = [
        ir_measures.Qrel(query_id, document_id, grade)
        for query_id, grades in judgements.items()
        if query_id in rankings
        for document_id, grade in grades.items()
    ]
    # The order is all that counts; scores that fall by one keep ties from being broken anew.
    run = [
        ir_measures.ScoredDoc(query_id, document_id, float(-place))
        for query_id, ranking in rankings.items()
        for place, document_id in enumerate(ranking)
    ]
    return qrels, run


def dcg(grades: Sequence[int]) -> float:
    """Discounted cumulated gain of grades in ranked order, the gain being the grade itself.

    Järvelin and Kekäläinen, “Cumulated Gain-based Evaluation of IR Techniques” (2002), with the
    discount of trec_eval.
    """
    return sum(grade / log2(place + 1) for place, grade in enumerate(grades, start=1) if grade > 0)


def latencies(milliseconds: Sequence[float]) -> dict[str, float]:
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {"p50_ms": round(float(p50), 2), "p95_ms": round(float(p95), 2)}


#: Without members, so that no user's search finds evaluation corpora.
WORKSPACE = "evaluation"

#: Number of documents from which the language of very short ones is detected.
LANGUAGE_SAMPLE = 50


def evaluate_collection(
    collection: Collection,
    dataset: Dataset,
    *,
    modes: Sequence[Mode],
    k: int = 10,
    seconds_to_ingest: float | None = None,
    rerank: bool = False,
    **asked: Any,
) -> dict[str, Any]:
    """Measures `modes` on the questions of `dataset`, asked of `collection`: a report as
    `manage.py evaluate --json` prints it. With `rerank` each mode is measured with reranking too,
    as `hybrid+rerank`. `asked` are further options of `ask_questions`.
    """
    results: dict[str, dict[str, float]] = {}
    for mode, reranks in product(modes, (False, True) if rerank else (False,)):
        rankings, times, _ = ask_questions(collection, dataset, mode=mode, rerank=reranks, **asked)
        name = f"{mode}+rerank" if reranks else mode
        results[name] = {**measure(rankings, dataset.judgements, k=k), **latencies(times)}
    return {
        "dataset": dataset.name,
        "documents": Document.objects.filter(collection=collection).current().count(),
        "chunks": chunk_count(collection=collection),
        "queries": len(dataset.queries),
        "seconds_to_ingest": seconds_to_ingest,
        "modes": results,
    }


def ask_questions(
    collection: Collection,
    dataset: Dataset,
    *,
    mode: Mode,
    fusion: Method | None = None,
    rerank: bool | None = None,
    rerank_depth: int | None = None,
    scope_field: str = "",
    on_progress: Progress = ignore_progress,
) -> tuple[dict[str, list[str]], list[float], list[str]]:
    """Asks every question of `dataset` in `collection`, one after another: rankings of document
    keys by query id, the latency of each query, and what did not work. With `scope_field`, a
    question searches only documents whose field equals its own.
    """
    rankings: dict[str, list[str]] = {}
    times: list[float] = []
    degraded: set[str] = set()
    for number, query in enumerate(dataset.queries, start=1):
        scope = question_scope(collection, query, scope_field)
        result = search(
            query.text,
            scope=scope,
            mode=mode,
            k=MAX_K,
            fusion=fusion,
            rerank=rerank,
            rerank_depth=rerank_depth,
            group=True,
            snippets=False,
        )
        rankings[query.id] = [hit.document_key for hit in result.hits]
        times.append(result.milliseconds)
        degraded.update(result.degraded)
        on_progress(mode, number, len(dataset.queries))
    return rankings, times, sorted(degraded)


def question_scope(collection: Collection, query: Entry, scope_field: str = "") -> Scope:
    """The scope in which a question is asked."""
    fields = query.fields if scope_field else {}
    return site_scope(
        workspace=collection.workspace,
        collections=[collection.slug],
        metadata={scope_field: fields[scope_field]} if scope_field in fields else {},
    )


@contextmanager
def ingested_collection(
    dataset: Dataset,
    *,
    keep: bool = False,
    on_progress: Progress = ignore_progress,
) -> Iterator[tuple[Collection, float]]:
    """The set's corpus as a collection, and the seconds its ingestion took.

    It is removed afterwards unless `keep`; a kept one is reused, so that only changes are
    embedded.
    """
    workspace: Workspace = get_or_create_workspace(slug=WORKSPACE)
    collection = get_or_create_collection(
        workspace=workspace, slug=slugify(dataset.name.replace("_", "-"))[:63] or "set"
    )
    sample = " ".join(entry.text for entry in islice(dataset.corpus, LANGUAGE_SAMPLE))
    usual = detect_language(sample)

    def sources() -> Iterator[Source]:
        """Title and text as one document each, other fields as metadata. Without text, the
        title is the text.
        """
        for entry in dataset.corpus:
            declared = {
                "title": entry.title if entry.text.strip() else "",
                "language": detect_language(f"{entry.title}\n{entry.text}", default=usual),
                "metadata": entry.fields,
                "file_name": "document.txt",
            }
            text = entry.text if entry.text.strip() else entry.title
            yield text_source(entry.id, text, **{name: of for name, of in declared.items() if of})

    started = perf_counter()
    try:
        ingest_inline(
            collection=collection,
            sources=sources(),
            source=dataset.name,
            on_progress=lambda run: on_progress("ingest", run.settled, len(dataset.corpus)),
        )
        yield collection, perf_counter() - started
    finally:
        if not keep:
            delete_collection(collection=collection)
