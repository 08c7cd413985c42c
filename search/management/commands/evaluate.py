"""`manage.py evaluate`: how good retrieval is on judged questions, and learning from them."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from accounts.services import DEFAULT_WORKSPACE
from common.console import (
    PARTIAL,
    CommandOutput,
    Options,
    ServiceCommand,
    add_json_option,
    print_table,
)
from common.errors import InvalidInput
from common.options.commandline import add_options
from common.text import pluralized
from documents.models import Collection
from search.evaluation.datasets import (
    Dataset,
    export_dataset,
    golden_set,
    judged_collection,
    load_dataset,
)
from search.evaluation.evaluate import evaluate_collection, ingested_collection, question_scope
from search.evaluation.learned_weights import reset_tuning, store_tuning, tune
from search.evaluation.memory import evaluate_memory
from search.evaluation.reports import (
    TOLERANCE,
    change_table,
    compare_with_baseline,
    fell,
    memory_tables,
    report_table,
    weights_summary,
    weights_table,
)
from search.query_options import SearchQuery
from search.ranking import require_reranker
from search.results import MODES, Mode

#: Options that mean something only with a set on disk, or only without.
FOR_A_SET = ("keep", "scope_field")
FOR_JUDGEMENTS = ("collection", "export", "forget", "judgements")
#: Options that mean something only of documents, or only of memories.
FOR_DOCUMENTS = (*FOR_JUDGEMENTS, "keep", "rerank", "rerank_depth", "tune")
FOR_MEMORY = ("recency",)
APPS = ("documents", "memory")


def _modes(value: str) -> list[Mode]:
    wanted = value.split(",")
    unknown = [mode for mode in wanted if mode not in MODES]
    if unknown:
        raise ArgumentTypeError(f"there is no mode “{unknown[0]}”; use {', '.join(MODES)}")
    return [mode for mode in MODES if mode in wanted]


def _shares(value: str) -> tuple[float, ...]:
    shares = tuple(float(share) for share in value.split(","))
    if not all(0 <= share <= 1 for share in shares):
        raise ArgumentTypeError("weights are from 0 to 1")
    return shares


class Command(ServiceCommand):
    help = (
        "Ask judged questions in every mode and print the measures side by side: those of DIR"
        " (corpus.jsonl, queries.jsonl, qrels.tsv), whose corpus goes into a throw-away collection,"
        " or with --judgements those that were judged in the admin. --tune learns from them how"
        " much words and meaning should count. Exit code: 0 measured, 1 worse than the --baseline,"
        " 2 not measured."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR", nargs="?")
        parser.add_argument("--mode", type=_modes, default=list(MODES), help=",".join(MODES))
        parser.add_argument("-k", "--k", type=int, default=10, help="depth of nDCG (default: 10)")
        add_options(parser, SearchQuery, only={"fusion"})
        parser.add_argument(
            "--rerank",
            action=BooleanOptionalAction,
            help="measure every mode with reranking, too (default: only without)",
        )
        add_options(parser, SearchQuery, only={"rerank_depth"})
        add_json_option(parser)

        of_a_set = parser.add_argument_group("with DIR")
        of_a_set.add_argument(
            "--scope-field", default="", help="search only documents that share this field"
        )
        of_a_set.add_argument(
            "--app",
            choices=APPS,
            default="documents",
            help="what the corpus becomes: documents of a collection, or turns that users said,"
            " whom --scope-field tells apart (default: documents)",
        )
        of_a_set.add_argument(
            "--recency",
            type=_shares,
            default=(),
            help="with --app memory: weights of recency to rank with, 0 to 1 (default: 0 and the"
            " site's own)",
        )
        of_a_set.add_argument(
            "--keep", action="store_true", help="keep the collection and use it again next time"
        )

        judged = parser.add_argument_group("with judgements from the admin")
        judged.add_argument(
            "--judgements", action="store_true", help="ask the golden set of a live collection"
        )
        judged.add_argument(
            "--collection", default="", help="slug (default: the only one with judgements)"
        )
        judged.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        judged.add_argument(
            "--export", type=Path, metavar="DIR", help="write queries.jsonl and qrels.tsv there"
        )

        baseline = parser.add_argument_group("against an earlier run")
        baseline.add_argument(
            "--baseline", type=Path, metavar="FILE", help="what an earlier --json printed"
        )
        baseline.add_argument(
            "--tolerance", type=float, default=TOLERANCE, help=f"(default: {TOLERANCE})"
        )

        learning = parser.add_argument_group("learning weights")
        learning.add_argument(
            "--tune", action="store_true", help="learn the collection's weights and keep them"
        )
        learning.add_argument(
            "--forget", action="store_true", help="go back to the default weights"
        )

    def run(self, options: Options) -> CommandOutput:
        _check(options)
        if options["forget"]:
            collection = judged_collection(
                workspace=options["workspace"], slug=options["collection"]
            )
            change = " again" if reset_tuning(collection) else ", as before"
            line = f"“{collection}” is searched with the default weights{change}."
            return CommandOutput(lines=[line])
        if options["app"] == "memory":
            memories = evaluate_memory(
                load_dataset(options["directory"]),
                scope_field=options["scope_field"],
                k=options["k"],
                recencies=options["recency"],
                on_progress=self.show_progress,
            )
            return self._show(memories, memory_tables(memories, k=options["k"]), options)
        with self._question_set(options) as (collection, dataset, seconds):
            if options["export"]:
                export_dataset(dataset, options["export"])
                questions = pluralized(len(dataset.queries), "question")
                return CommandOutput(warnings=[f"{questions} in {options['export']}."])
            if options["tune"]:
                return self._tune(collection, dataset, options)
            report = evaluate_collection(
                collection,
                dataset,
                modes=options["mode"],
                k=options["k"],
                seconds_to_ingest=seconds,
                on_progress=self.show_progress,
                rerank=bool(options["rerank"]),
                **{name: options[name] for name in ("fusion", "rerank_depth", "scope_field")},
            )
            return self._show(report, [report_table(report)], options)

    @contextmanager
    def _question_set(self, options: Options) -> Iterator[tuple[Collection, Dataset, float | None]]:
        """The collection, its questions, and the seconds of ingestion."""
        if options["directory"]:
            if options["rerank"]:
                require_reranker()  # before minutes are spent on the corpus
            dataset = load_dataset(options["directory"])
            with ingested_collection(
                dataset, keep=options["keep"], on_progress=self.show_progress
            ) as made:
                yield made[0], dataset, round(made[1], 2)
        else:
            collection = judged_collection(
                workspace=options["workspace"], slug=options["collection"]
            )
            yield collection, golden_set(collection), None

    def _show(self, report: dict[str, Any], tables: list[Table], options: Options) -> CommandOutput:
        """The report; prints its tables, and the changes since the baseline."""
        if not options["json"]:
            for table in tables:
                print_table(table)
        code = 0
        if options["baseline"]:
            tolerance = options["tolerance"]
            changes = compare_with_baseline(report, options["baseline"])
            stream = sys.stderr if options["json"] else None
            print_table(change_table(changes, tolerance=tolerance), stream=stream)
            code = PARTIAL if any(fell(change, tolerance) for change in changes) else 0
        return CommandOutput(report, code=code)

    def _tune(self, collection: Collection, dataset: Dataset, options: Options) -> CommandOutput:
        learnt = tune(
            collection,
            dataset,
            scope_of=lambda query: question_scope(collection, query, options["scope_field"]),
            k=options["k"],
            on_progress=self.show_progress,
        )
        stays = options["keep"] or not options["directory"]
        stored = stays and store_tuning(collection, learnt)
        if not options["json"]:
            print_table(weights_table(dataset.name, learnt, k=options["k"]))
        result = "Nothing is changed: that is no gain."
        if stored:
            result = f"Searches of “{collection}” use these weights from now on."
        elif not stays:
            result = "The collection is thrown away with them; --keep keeps both."
        report = {**asdict(learnt), "gain": learnt.gain, "stored": stored}
        return CommandOutput(report, [weights_summary(learnt), result])


def _check(options: Options) -> None:
    """Raises InvalidInput for options that cannot be combined."""
    if not 1 <= options["k"] <= 100:
        raise InvalidInput("-k may be 1 to 100.")
    if options["directory"]:
        wrong = [name for name in FOR_JUDGEMENTS if options[name]]
        without = "without DIR"
    elif options["judgements"] or options["forget"]:
        wrong = [name for name in FOR_A_SET if options[name]]
        without = "with DIR"
    else:
        raise InvalidInput(
            "Name a DIR with corpus.jsonl, queries.jsonl and qrels.tsv, or say --judgements for"
            " what was judged in the admin."
        )
    if not wrong and options["app"] == "memory":
        wrong = [name for name in FOR_DOCUMENTS if options[name]]
        without = "without --app memory"
    elif not wrong:
        wrong = [name for name in FOR_MEMORY if options[name]]
        without = "with --app memory"
    if wrong:
        raise InvalidInput(f"--{wrong[0].replace('_', '-')} goes {without} only.")
