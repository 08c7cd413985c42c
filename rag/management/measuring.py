"""Answers by quotation, measured on a set's questions: what they cite, and what they refuse."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from documents.models import Collection, Document
from documents.services import document_text
from rag.answering import evidence, refusal
from rag.answering.extractive import Extract, extract
from rag.answering.passages import from_hits
from rag.answering.similarity import similar_to
from search.evaluation.dataset import Dataset, Entry
from search.evaluation.evaluate import scope_of
from search.evaluation.measures import latencies
from search.evaluation.progress import Progress, nobody_watches
from search.results import Mode, Scope
from search.services import search

#: Where a query's line has the words of its answer.
ANSWER_FIELDS = ("answers", "answer")


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """Shares of the questions, 0 to 1; a refused question has cited nothing.

    `cited_1`: the first citation is in a relevant document; `cited`: some is. `quoted`: what is
    quoted holds the answer, of the questions whose line says one. `resolved`: of the citations,
    whose offsets in their document hold what was quoted. `refused_foreign`: of the questions of
    another set, by its name.
    """

    dataset: str
    questions: int
    recall_1: float
    cited_1: float
    cited: float
    quoted: float | None
    refused: float
    refused_foreign: dict[str, float]
    citations: int
    resolved: float
    characters: float
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class _Answered:
    """One question: the documents found, best first, and what was quoted of them."""

    found: tuple[str, ...]
    extract: Extract
    refused: bool
    milliseconds: float


def measure_answers(
    collection: Collection,
    dataset: Dataset,
    *,
    foreign: Sequence[Dataset] = (),
    mode: Mode = "hybrid",
    k: int,
    scope_field: str = "",
    on_progress: Progress = nobody_watches,
) -> AnswerReport:
    """Ask the questions of `dataset`, whose corpus `collection` holds, and those of other sets,
    which it cannot answer. `k` passages are looked at."""

    def ask_all(what: str, queries: Sequence[Entry], field: str) -> list[_Answered]:
        answered = []
        for number, query in enumerate(queries, start=1):
            answered.append(_ask(query.text, scope_of(collection, query, field), mode=mode, k=k))
            on_progress(what, number, len(queries))
        return answered

    own = ask_all("ask", dataset.queries, scope_field)
    strange = {other.name: ask_all(other.name, other.queries, "") for other in foreign}
    relevant = [
        {key for key, grade in dataset.judgements[query.id].items() if grade > 0}
        for query in dataset.queries
    ]
    cited = [[each.passage.document_key for each in one.extract.cited] for one in own]
    quoted = [
        _holds(one.extract, wanted)
        for one, query in zip(own, dataset.queries, strict=True)
        if (wanted := _answers(query))
    ]
    citations, resolved = _resolved(own)
    times = latencies([one.milliseconds for one in own])
    return AnswerReport(
        dataset=dataset.name,
        questions=len(own),
        recall_1=_share(
            bool(set(one.found[:1]) & gold) for one, gold in zip(own, relevant, strict=True)
        ),
        cited_1=_share(
            bool(set(keys[:1]) & gold) for keys, gold in zip(cited, relevant, strict=True)
        ),
        cited=_share(bool(set(keys) & gold) for keys, gold in zip(cited, relevant, strict=True)),
        quoted=_share(quoted) if quoted else None,
        refused=_share(one.refused for one in own),
        refused_foreign={
            name: _share(one.refused for one in answered) for name, answered in strange.items()
        },
        citations=citations,
        resolved=round(resolved / citations, 4) if citations else 1.0,
        characters=round(sum(len(one.extract.text) for one in own) / max(len(own), 1), 1),
        p50_ms=times["p50_ms"],
        p95_ms=times["p95_ms"],
    )


def _ask(question: str, scope: Scope, *, mode: Mode, k: int) -> _Answered:
    """As `rag.services.answering` does it where there is no chat model."""
    started = perf_counter()
    result = search(question, scope=scope, mode=mode, k=k, snippets=False)
    passages = from_hits(result.hits)
    answers = refusal.judge(evidence.gather(result, passages, scope=scope)).answers
    extracted = Extract()
    if answers:
        extracted = extract(question, passages, similar=similar_to(question, passages))
    return _Answered(
        found=tuple(passage.document_key for passage in passages),
        extract=extracted,
        refused=not extracted.cited,
        milliseconds=(perf_counter() - started) * 1000,
    )


def _answers(query: Entry) -> list[str]:
    """What its line says the answer is."""
    said: Any = next((query.fields[name] for name in ANSWER_FIELDS if query.fields.get(name)), [])
    return [str(each).casefold() for each in (said if isinstance(said, list) else [said])]


def _holds(extracted: Extract, wanted: Sequence[str]) -> bool:
    quotes = [each.quote.casefold() for each in extracted.cited]
    return any(answer in quote for answer in wanted for quote in quotes)


def _resolved(answered: Sequence[_Answered]) -> tuple[int, int]:
    """How many citations there are, and how many of them are their document's text."""
    cited = [each for one in answered for each in one.extract.cited]
    documents = Document.objects.in_bulk({each.passage.document_id for each in cited})
    texts = {pk: document_text(document).text for pk, document in documents.items()}
    return len(cited), sum(
        texts.get(each.passage.document_id, "")[each.start : each.end] == each.quote
        for each in cited
    )


def _share(values: Iterable[bool]) -> float:
    found = list(values)
    return round(sum(found) / len(found), 4) if found else 0.0
