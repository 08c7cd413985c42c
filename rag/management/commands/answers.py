"""`manage.py answers`: measure extractive answers on a set of judged questions: citations and
refusals."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from rag.answering.answerability import judge_answerability
from rag.answering.evidence import find_passages, question_similarity
from rag.answering.extractive import ExtractiveAnswer, extract_answer
from rag.events import Citation
from search.evaluation.datasets import Dataset, Entry, load_dataset
from search.evaluation.evaluate import (
    Progress,
    ignore_progress,
    ingested_collection,
    latencies,
    question_scope,
)
from search.results import MODES, Mode, Scope

#: Fields of a query's line with its expected answer.
ANSWER_FIELDS = ("answers", "answer")


def measure_answers(
    collection: Collection,
    dataset: Dataset,
    *,
    foreign: Sequence[Dataset] = (),
    mode: Mode = "hybrid",
    k: int,
    scope_field: str = "",
    on_progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Ask the questions of `dataset`, whose corpus is in `collection`, and those of `foreign` sets,
    which it cannot answer. `k` is how many passages are retrieved.

    The figures are shares of the questions, 0 to 1; a refused question has cited nothing.
    `cited_1`: the first citation is in a relevant document; `cited`: any citation is. `quoted`: the
    quotes contain the answer, of the questions whose line has one. `resolved`: share of citations
    whose offsets in the document match the quote. `refused_foreign`: refusals of the questions of
    other sets, by the set's name.
    """
    recall, first_cited, any_cited, quoted, refused = [], [], [], [], []
    citations: list[Citation] = []
    characters, times = 0, []
    for query in _with_progress("ask", dataset.queries, on_progress):
        started = perf_counter()
        scope = question_scope(collection, query, scope_field)
        found, extract = _answer_question(query.text, scope, mode=mode, k=k)
        times.append((perf_counter() - started) * 1000)
        gold = {key for key, grade in dataset.judgements[query.id].items() if grade > 0}
        keys = [each.passage.document_key for each in extract.cited]
        recall.append(bool(set(found[:1]) & gold))
        first_cited.append(bool(set(keys[:1]) & gold))
        any_cited.append(bool(set(keys) & gold))
        refused.append(not keys)
        quotes = [each.quote.casefold() for each in extract.cited]
        expected: Any = next(filter(None, map(query.fields.get, ANSWER_FIELDS)), [])
        answers = expected if isinstance(expected, list) else [expected]
        if answers:
            said = "\n".join(quotes)
            quoted.append(any(str(answer).casefold() in said for answer in answers))
        citations += extract.cited
        characters += len(extract.text)
    refused_foreign = {
        other.name: _share(
            [
                not _answer_question(
                    query.text, question_scope(collection, query, ""), mode=mode, k=k
                )[1].cited
                for query in _with_progress(other.name, other.queries, on_progress)
            ]
        )
        for other in foreign
    }
    resolved = _resolved(citations)
    taken = latencies(times)
    return {
        "dataset": dataset.name,
        "questions": len(dataset.queries),
        "recall_1": _share(recall),
        "cited_1": _share(first_cited),
        "cited": _share(any_cited),
        "quoted": _share(quoted) if quoted else None,
        "refused": _share(refused),
        "refused_foreign": refused_foreign,
        "citations": len(citations),
        "resolved": _share(resolved) if resolved else 1.0,
        "characters": round(characters / max(len(dataset.queries), 1), 1),
        "p50_ms": taken["p50_ms"],
        "p95_ms": taken["p95_ms"],
    }


def _answer_question(
    question: str, scope: Scope, *, mode: Mode, k: int
) -> tuple[list[str], ExtractiveAnswer]:
    """The documents found, best first, and what is quoted of them, as `rag.services.answers` does
    without a chat model."""
    found = find_passages(question, scope=scope, mode=mode, k=k)
    passages = found.passages
    extracted = ExtractiveAnswer()
    if judge_answerability(found.evidence):
        similar = question_similarity(question, passages)
        extracted = extract_answer(question, passages, similar=similar)
    return [passage.document_key for passage in passages], extracted


def _with_progress(what: str, queries: Sequence[Entry], on_progress: Progress) -> Iterator[Entry]:
    for number, query in enumerate(queries, start=1):
        yield query
        on_progress(what, number, len(queries))


def _resolved(citations: Sequence[Citation]) -> list[bool]:
    """Of each, whether it matches its document's text."""
    documents = Document.objects.in_bulk({each.passage.document_id for each in citations})
    texts = {pk: document_text(document).text for pk, document in documents.items()}
    return [
        texts.get(each.passage.document_id, "")[each.start : each.end] == each.quote
        for each in citations
    ]


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


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
        return CommandOutput(report)


def _report_table(report: dict[str, Any]) -> Table:
    questions = pluralized(report["questions"], "question")
    table = Table("measure", title=f"{report['dataset']}: {questions}")
    table.add_column("value", justify="right")
    rows = {
        "first hit is relevant": report["recall_1"],
        "first citation is relevant": report["cited_1"],
        "some citation is relevant": report["cited"],
        "quotations hold the answer": report["quoted"],
        "refused": report["refused"],
        **{f"refused of {name}": share for name, share in report["refused_foreign"].items()},
        f"of {report['citations']} citations resolve": report["resolved"],
    }
    for name, value in rows.items():
        table.add_row(name, "unknown" if value is None else f"{value:.4f}")
    table.add_row("characters of an answer", f"{report['characters']:g}")
    table.add_row("milliseconds, median", f"{report['p50_ms']:g}")
    table.add_row("milliseconds, 95 %", f"{report['p95_ms']:g}")
    return table
