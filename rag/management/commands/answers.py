"""`manage.py answers`: measure extractive answers on a set of judged questions: citations and
refusals."""

from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from django.conf import settings
from rich.table import Table

from common.console import CommandOutput, Options, ServiceCommand, add_json_option, print_table
from common.errors import InvalidInput
from common.text import pluralized
from documents.models import Collection, Document
from documents.services import document_text
from rag.answering import answerability, evidence
from rag.answering.evidence import passages_from_hits, question_similarity
from rag.answering.extractive import ExtractiveAnswer, extract_answer
from search.evaluation.datasets import Dataset, Entry, load_dataset
from search.evaluation.evaluate import (
    Progress,
    ignore_progress,
    ingested_collection,
    latencies,
    question_scope,
)
from search.results import MODES, Mode, Scope
from search.services import search

#: Fields of a query's line with its expected answer.
ANSWER_FIELDS = ("answers", "answer")


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """Shares of the questions, 0 to 1; a refused question has cited nothing.

    `cited_1`: the first citation is in a relevant document; `cited`: any citation is. `quoted`: the
    quotes contain the answer, of the questions whose line has one. `resolved`: share of citations
    whose offsets in the document match the quote. `refused_foreign`: refusals of the questions of
    other sets, by the set's name.
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
class _QuestionResult:
    """One question: the documents found, best first, and what was quoted of them."""

    found: tuple[str, ...]
    extract: ExtractiveAnswer
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
    on_progress: Progress = ignore_progress,
) -> AnswerReport:
    """Ask the questions of `dataset`, whose corpus is in `collection`, and those of `foreign` sets,
    which it cannot answer. `k` is how many passages are retrieved."""

    def ask_all(what: str, queries: Sequence[Entry], field: str) -> list[_QuestionResult]:
        answered = []
        for number, query in enumerate(queries, start=1):
            answered.append(
                _answer_question(
                    query.text, question_scope(collection, query, field), mode=mode, k=k
                )
            )
            on_progress(what, number, len(queries))
        return answered

    own = ask_all("ask", dataset.queries, scope_field)
    recall, first_cited, any_cited, quoted = [], [], [], []
    for one, query in zip(own, dataset.queries, strict=True):
        gold = {key for key, grade in dataset.judgements[query.id].items() if grade > 0}
        keys = [each.passage.document_key for each in one.extract.cited]
        recall.append(bool(set(one.found[:1]) & gold))
        first_cited.append(bool(set(keys[:1]) & gold))
        any_cited.append(bool(set(keys) & gold))
        quotes = [each.quote.casefold() for each in one.extract.cited]
        if answers := _expected_answers(query):
            quoted.append(any(answer in quote for answer in answers for quote in quotes))
    citations, resolved = _count_resolved(own)
    times = latencies([one.milliseconds for one in own])
    return AnswerReport(
        dataset=dataset.name,
        questions=len(own),
        recall_1=_share(recall),
        cited_1=_share(first_cited),
        cited=_share(any_cited),
        quoted=_share(quoted) if quoted else None,
        refused=_share(one.refused for one in own),
        refused_foreign={
            other.name: _share(one.refused for one in ask_all(other.name, other.queries, ""))
            for other in foreign
        },
        citations=citations,
        resolved=round(resolved / citations, 4) if citations else 1.0,
        characters=round(sum(len(one.extract.text) for one in own) / max(len(own), 1), 1),
        p50_ms=times["p50_ms"],
        p95_ms=times["p95_ms"],
    )


def _answer_question(question: str, scope: Scope, *, mode: Mode, k: int) -> _QuestionResult:
    """Answer as `rag.services.answers` does without a chat model."""
    started = perf_counter()
    result = search(question, scope=scope, mode=mode, k=k, snippets=False)
    passages = passages_from_hits(result.hits)
    answers = answerability.judge_answerability(
        evidence.gather_evidence(result, passages, scope=scope)
    ).answers
    extracted = ExtractiveAnswer()
    if answers:
        extracted = extract_answer(
            question, passages, similar=question_similarity(question, passages)
        )
    return _QuestionResult(
        found=tuple(passage.document_key for passage in passages),
        extract=extracted,
        refused=not extracted.cited,
        milliseconds=(perf_counter() - started) * 1000,
    )


def _expected_answers(query: Entry) -> list[str]:
    """The expected answers in the query's line, in lower case."""
    given = [query.fields[name] for name in ANSWER_FIELDS if query.fields.get(name)]
    expected: Any = given[0] if given else []
    return [
        str(each).casefold() for each in (expected if isinstance(expected, list) else [expected])
    ]


def _count_resolved(answered: Sequence[_QuestionResult]) -> tuple[int, int]:
    """How many citations there are, and how many of them match their document's text."""
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


class Command(ServiceCommand):
    help = (
        "Answer the questions of DIR (corpus.jsonl, queries.jsonl, qrels.tsv) by quoting its"
        " corpus, which goes into a throw-away collection, and tell what is cited and what is"
        " refused. With --unanswerable also the questions of other sets, all of which should be"
        " refused. Exit code: 0 measured, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR")
        parser.add_argument(
            "--unanswerable",
            type=Path,
            metavar="DIR",
            action="append",
            default=[],
            help="a set of which the corpus knows nothing; may be given several times",
        )
        parser.add_argument("--mode", choices=MODES, default="hybrid")
        parser.add_argument(
            "--questions", type=int, metavar="N", help="of each set so many, always the same"
        )
        parser.add_argument(
            "--scope-field", default="", help="search only documents that share this field"
        )
        parser.add_argument("--keep", action="store_true", help="keep the collection")
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        if options["questions"] is not None and options["questions"] < 1:
            raise InvalidInput("--questions must be at least 1.")
        datasets = []
        for directory in (options["directory"], *options["unanswerable"]):
            loaded = load_dataset(directory)
            most, count = options["questions"], len(loaded.queries)
            if most and most < count:  # evenly spaced
                chosen = (loaded.queries[place * count // most] for place in range(most))
                loaded = replace(loaded, queries=tuple(chosen))
            datasets.append(loaded)
        dataset, *foreign = datasets
        with ingested_collection(
            dataset, keep=options["keep"], on_progress=self.show_progress
        ) as made:
            report = measure_answers(
                made[0],
                dataset,
                foreign=foreign,
                mode=options["mode"],
                k=settings.RAG_PASSAGES,
                scope_field=options["scope_field"],
                on_progress=self.show_progress,
            )
        if not options["json"]:
            print_table(_report_table(report))
        return CommandOutput(asdict(report))


def _report_table(report: AnswerReport) -> Table:
    table = Table("measure", title=f"{report.dataset}: {pluralized(report.questions, 'question')}")
    table.add_column("value", justify="right")
    rows = {
        "first hit is relevant": report.recall_1,
        "first citation is relevant": report.cited_1,
        "some citation is relevant": report.cited,
        "quotations hold the answer": report.quoted,
        "refused": report.refused,
        **{f"refused of {name}": share for name, share in report.refused_foreign.items()},
        f"of {report.citations} citations resolve": report.resolved,
    }
    for name, value in rows.items():
        table.add_row(name, "unknown" if value is None else f"{value:.4f}")
    table.add_row("characters of an answer", f"{report.characters:g}")
    table.add_row("milliseconds, median", f"{report.p50_ms:g}")
    table.add_row("milliseconds, 95 %", f"{report.p95_ms:g}")
    return table
