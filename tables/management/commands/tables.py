"""`manage.py tables …`: tables of documents read again, and questions to them measured."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from accounts.services import DEFAULT_WORKSPACE, get_workspace_by_slug
from common.console import CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents.services import get_collection
from tables import services
from tables.asking import ask_tables
from tables.evaluation import AskedQuestion, by_kind, counts, evaluate, load_questions
from tables.models import Table


class Command(ServiceCommand):
    help = "Tables of documents. Exit code: 0 done, 2 nothing was done."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        rebuilding = add(
            "rebuild",
            rebuild,
            "read the tables of documents that were loaded before tables were kept",
        )
        rebuilding.add_argument("--collection", default="", help="slug; default: of all")
        rebuilding.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        evaluating = add(
            "evaluate", measure, "ask questions whose answers are known, and count the right ones"
        )
        evaluating.add_argument(
            "directory",
            type=Path,
            metavar="DIR",
            help="has questions.toml",
        )
        evaluating.add_argument("--collection", default="", help="slug; default: all")
        evaluating.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        evaluating.add_argument(
            "--failures",
            action="store_true",
            help="list what was not right",
        )

    def is_about_site(self, options: Options) -> bool:
        return options["action"] == "rebuild" and not options["collection"]


def rebuild(options: Options) -> CommandOutput:
    collection = None
    if slug := options["collection"]:
        collection = get_collection(
            workspace=get_workspace_by_slug(options["workspace"]), slug=slug
        )
    *_, (looked, read) = [(0, 0), *services.rebuild_tables(collection)]
    return CommandOutput(
        data={"documents": looked, "with_tables": read},
        lines=[f"{pluralized(looked, 'document')} looked at, {read:,} of them with tables."],
    )


def measure(options: Options) -> CommandOutput:
    workspace = get_workspace_by_slug(options["workspace"])
    tables = Table.objects.filter(workspace=workspace).current()
    if slug := options["collection"]:
        tables = tables.filter(collection=get_collection(workspace=workspace, slug=slug))
    results = evaluate(
        load_questions(options["directory"]), lambda question: ask_tables(question, tables)
    )
    lines = [f"{pluralized(len(results), 'question')}: {_in_words(results)}."]
    lines += [f"  {kind}: {_in_words(same)}" for kind, same in by_kind(results).items()]
    with_rows = [each for each in results if each.has_right_rows is not None]
    if with_rows:
        right = sum(bool(each.has_right_rows) for each in with_rows)
        lines.append(f"Rows shown: {right} of {len(with_rows)} right.")
    if options["failures"]:
        lines += [
            f"{each.outcome}: {each.question} – {each.computed or 'nothing'} – {each.found}"
            for each in results
            if each.outcome != "right"
        ]
    return CommandOutput(
        data={**counts(results), "questions": [asdict(each) for each in results]}, lines=lines
    )


def _in_words(results: Sequence[AskedQuestion]) -> str:
    found = counts(results)
    return f"{found['right']} right, {found['wrong']} wrong, {found['unknown']} not answered"
