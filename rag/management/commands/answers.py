"""`manage.py answers`: measure answers on a set of questions whose gold passages are known."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace
from common.console import (
    CommandOutput,
    Options,
    ServiceCommand,
    add_json_option,
    print_table,
    terminal_safe,
)
from common.errors import InvalidInput
from common.text import pluralized
from rag.context import RagContext
from rag.evaluation.measures import (
    DEGREES,
    MEASURES,
    Outcome,
    ask_questions,
    measure_outcomes,
    missing_gold,
    unresolved_citations,
)
from rag.evaluation.questions import JudgedQuestion, QuestionSet, load_question_set
from search.evaluation.evaluate import ingested_collection
from search.results import MODES

#: Options of sets that bring a corpus, and of those whose documents are on the site.
FOR_A_CORPUS = ("keep", "scope_field", "unanswerable")
FOR_THE_SITE = ("collection",)

#: Lines about gold passages that are not on the site, at most.
MAX_WARNINGS = 10

ContextOf = Callable[[JudgedQuestion], RagContext]


class Command(ServiceCommand):
    help = (
        "Ask the questions of DIR as a chat would and measure the answers, by language and in all:"
        " citations in the gold passage, gold sentences quoted, how often the sure answers are"
        " right, refusals. DIR holds questions.toml"
        " or questions.jsonl about documents of the site's collections; or corpus.jsonl,"
        " queries.jsonl and qrels.tsv, whose corpus goes into a throw-away collection. Exit code:"
        " 0 measured, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR")
        parser.add_argument(
            "--model", default="", help="a chat model; `extractive` quotes; default: the site's"
        )
        parser.add_argument("--mode", choices=MODES, default="hybrid", help="of the search")
        parser.add_argument(
            "--questions", type=int, metavar="N", help="of each set so many, always the same"
        )
        parser.add_argument(
            "--failures", action="store_true", help="list what went wrong, with what was quoted"
        )
        add_json_option(parser)
        site = parser.add_argument_group("with questions.toml or questions.jsonl")
        site.add_argument(
            "--collection", action="append", default=[], help="slug; may be repeated; default: all"
        )
        site.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        corpus = parser.add_argument_group("with corpus.jsonl")
        corpus.add_argument(
            "--unanswerable",
            type=Path,
            metavar="DIR",
            action="append",
            default=[],
            help="a set of which the corpus knows nothing; may be given several times",
        )
        corpus.add_argument(
            "--scope-field", default="", help="search only documents that share this field"
        )
        corpus.add_argument("--keep", action="store_true", help="keep the collection")

    def run(self, options: Options) -> CommandOutput:
        if options["questions"] is not None and options["questions"] < 1:
            raise InvalidInput("--questions must be at least 1.")
        found, *foreign = (
            _sampled(load_question_set(directory), options["questions"])
            for directory in (options["directory"], *options["unanswerable"])
        )
        wrong = [
            name for name in (FOR_THE_SITE if found.dataset else FOR_A_CORPUS) if options[name]
        ]
        if wrong:
            which = "without" if found.dataset else "with"
            raise InvalidInput(f"--{wrong[0].replace('_', '-')} goes {which} corpus.jsonl only.")
        asked = {"model": options["model"], "mode": options["mode"]}
        with self._contexts(found, options) as context_of:
            outcomes = list(
                ask_questions(
                    found.questions,
                    context_of=context_of,
                    options=asked,
                    on_progress=self.show_progress,
                )
            )
            report = _report(found.name, outcomes)
            for other in foreign:
                questions = [replace(each, gold=(), fields={}) for each in other.questions]
                answered = list(
                    ask_questions(
                        questions,
                        context_of=context_of,
                        options=asked,
                        on_progress=self.show_progress,
                    )
                )
                measured = measure_outcomes(answered)
                report["foreign"][other.name] = measured["refused_unanswerable"]
                report["foreign_high"][other.name] = measured["high_unanswerable"]
                outcomes += answered
        if options["failures"]:
            report["failures"] = [_failure(each) for each in outcomes if each.problems]
        if options["json"]:
            return CommandOutput(report)
        print_table(_table(report))
        return CommandOutput(lines=_failure_lines(report.get("failures", [])))

    @contextmanager
    def _contexts(self, found: QuestionSet, options: Options) -> Iterator[ContextOf]:
        """Yields in which context a question is asked; a set's own corpus is there meanwhile."""
        if not found.dataset:
            workspace = get_or_create_workspace(slug=options["workspace"])
            collections = tuple(options["collection"])

            def on_the_site(question: JudgedQuestion) -> RagContext:
                return RagContext(user=None, workspace=workspace, collections=collections)

            scope = on_the_site(found.questions[0]).search_scope()
            self._warn(found, scope.collection_ids)
            yield on_the_site
            return
        name = options["scope_field"]
        with ingested_collection(
            found.dataset, keep=options["keep"], on_progress=self.show_progress
        ) as (collection, _):

            def in_the_corpus(question: JudgedQuestion) -> RagContext:
                value = question.fields.get(name) if name else None
                return RagContext(
                    user=None,
                    workspace=collection.workspace,
                    collections=(collection.slug,),
                    filter={f"metadata.{name}": value} if value is not None else None,
                )

            yield in_the_corpus

    def _warn(self, found: QuestionSet, collections: Sequence[int]) -> None:
        """Name gold passages that are not on the site. Raises InvalidInput where none is."""
        missing = missing_gold(found.questions, collections=collections)
        if missing and len(missing) == sum(len(each.gold) for each in found.questions):
            raise InvalidInput(
                "None of the set's gold passages is in these collections. Ingest their documents,"
                " or name others with --collection and --workspace."
            )
        more = len(missing) - MAX_WARNINGS
        for line in [*missing[:MAX_WARNINGS], *([f"… and {more} more."] if more > 0 else [])]:
            self.stderr.write(terminal_safe(line))


def _sampled(found: QuestionSet, most: int | None) -> QuestionSet:
    """The set with `most` questions, evenly spaced."""
    count = len(found.questions)
    if not most or most >= count:
        return found
    chosen = tuple(found.questions[place * count // most] for place in range(most))
    return replace(found, questions=chosen)


def _report(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    languages = dict.fromkeys(each.question.language for each in outcomes)
    citations = sum(len(each.citations) for each in outcomes)
    return {
        "set": name,
        **measure_outcomes(outcomes),
        "languages": {
            language: measure_outcomes([e for e in outcomes if e.question.language == language])
            for language in languages
        },
        "foreign": {},
        "foreign_high": {},
        "citations": citations,
        "citations_resolved": citations - unresolved_citations(outcomes),
        "characters": round(sum(len(each.text) for each in outcomes) / len(outcomes), 1),
    }


def _table(report: dict[str, Any]) -> Table:
    """A row for each measure, a column for all questions and for each language."""
    of_language = report["languages"] if len(report["languages"]) > 1 else {}
    groups = {"all": report, **of_language}
    questions = pluralized(report["questions"], "question")
    table = Table("measure", title=f"{terminal_safe(report['set'])}: {questions}")
    for name, measured in groups.items():
        table.add_column(f"{terminal_safe(name)} ({measured['questions']})", justify="right")
    for name, heading in {**MEASURES, **DEGREES}.items():
        if report[name]:
            table.add_row(heading, *(_cell(measured[name]) for measured in groups.values()))
    for name, measure in report["foreign"].items():
        table.add_row(f"refused of {terminal_safe(name)}", _cell(measure))
        called_sure = report["foreign_high"][name]
        table.add_row(f"called sure of {terminal_safe(name)}", _cell(called_sure))
    if report["errors"]:
        table.add_row("failed", *(f"{measured['errors']}" for measured in groups.values()))
    for name, heading in (("p50_ms", "milliseconds, median"), ("p95_ms", "milliseconds, 95 %")):
        table.add_row(heading, *(f"{measured[name]:,.0f}" for measured in groups.values()))
    resolved = f"{report['citations_resolved']} of {report['citations']}"
    table.add_row("citations at their place", resolved)
    table.add_row("characters of an answer", f"{report['characters']:g}")
    return table


def _cell(measure: dict[str, Any] | None) -> str:
    if measure is None:
        return "–"
    low, high = measure["interval"]
    return f"{measure['share']:.3f}  {low:.2f}–{high:.2f}"


def _failure(outcome: Outcome) -> dict[str, Any]:
    return {
        "confidence": outcome.confidence,
        "id": outcome.question.id,
        "question": outcome.question.text,
        "language": outcome.question.language,
        "problems": list(outcome.problems),
        "answer": outcome.text,
        "citations": [
            {
                "document": each.passage.document_key,
                "title": each.passage.title,
                "quote": each.quote,
            }
            for each in outcome.citations
        ],
        "gold": [
            {"document": each.document, "sentence": each.sentence} for each in outcome.question.gold
        ],
    }


def _failure_lines(failures: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for each in failures:
        lines += ["", f"{each['id']}: {each['question']}", f"  {'; '.join(each['problems'])}"]
        lines += [f"  quoted from {c['title']}: {c['quote']}" for c in each["citations"]]
        lines += [f"  gold in {g['document']}: {g['sentence']}" for g in each["gold"]]
    return [terminal_safe(line.replace("\n", " ")) for line in lines]
