"""`manage.py validate`: is everything in the tables, the indexes and the media folder as it should
be?"""

from argparse import ArgumentParser
from time import perf_counter
from typing import Any

from common.console import CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents.management.cli import add_collection_options, find_collection
from documents.validation import ValidationReport, validate

PROBLEMS = 3


class Command(ServiceCommand):
    help = (
        "Check counts, vectors, offsets, copies, runs, statistics, indexes and stored files. It"
        " only reads, unless --fix, and may run while the site works. Exit code: 0 clean, 2 it"
        " cannot be checked, 3 problems found."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_collection_options(parser, "slug; all collections where it is left out", required=False)
        parser.add_argument(
            "--fix",
            action="store_true",
            help="mend what is safe to mend: counts, copies, statistics, stuck documents, open"
            " runs, vector indexes, files of nobody; then check again",
        )

    def is_about_site(self, options: Options) -> bool:
        return not options["collection"]

    def run(self, options: Options) -> CommandOutput:
        started = perf_counter()
        collection = find_collection(options)
        report = validate(collection_id=collection.pk if collection else None, fix=options["fix"])
        seconds = round(perf_counter() - started, 3)
        verdict = "clean" if report.is_clean else pluralized(len(report.findings), "problem")
        return CommandOutput(
            {**report_as_dict(report), "seconds": seconds},
            [
                *(f"fixed: {name}: {count:,}" for name, count in report.fixed.items()),
                *map(str, report.findings),
                f"{verdict}: {len(report.checks)} checks, {seconds} s",
            ],
            code=0 if report.is_clean else PROBLEMS,
        )


def report_as_dict(report: ValidationReport) -> dict[str, Any]:
    """A validation as a dictionary for `--json`."""
    return {
        "clean": report.is_clean,
        "checks": list(report.checks),
        "problems": [
            {
                "check": finding.check.name,
                "count": finding.count,
                "rows": finding.check.rows,
                "examples": list(finding.examples),
                "problem": finding.check.problem,
                "cure": finding.check.cure,
            }
            for finding in report.findings
        ],
        "fixed": report.fixed,
    }
