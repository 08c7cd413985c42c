"""`manage.py validate`: is everything in the tables, the indexes and the media folder as it should
be?"""

import json
import sys
from argparse import ArgumentParser
from time import perf_counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.errors import RagsiteError
from documents.management.cli import get_collection_by_slug
from documents.validation import ValidationReport, validate

FATAL = 2
PROBLEMS = 3


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Check counts, vectors, offsets, copies, runs, statistics, indexes and stored files. It"
        " only reads, unless --fix, and may run while the site works. Exit code: 0 clean, 2 it"
        " cannot be checked, 3 problems found."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--collection", help="slug; all collections where it is left out")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument(
            "--fix",
            action="store_true",
            help="mend what is safe to mend: counts, copies, statistics, stuck documents, open"
            " runs, vector indexes, files of nobody; then check again",
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        try:
            collection_id = None
            if options["collection"]:
                collection_id = get_collection_by_slug(
                    workspace=options["workspace"], slug=options["collection"]
                ).pk
            report = validate(collection_id=collection_id, fix=options["fix"])
        except RagsiteError as error:
            raise CommandError(str(error), returncode=FATAL) from error
        seconds = round(perf_counter() - started, 3)
        if options["json"]:
            content = {**report_as_dict(report), "seconds": seconds}
            self.stdout.write(json.dumps(content, ensure_ascii=False, indent=2))
        else:
            for name, count in report.fixed.items():
                self.stdout.write(f"fixed: {name}: {count:,}")
            for finding in report.findings:
                self.stdout.write(str(finding))
            found = len(report.findings)
            verdict = "clean" if report.is_clean else f"{found} problem{'s' * (found > 1)}"
            self.stdout.write(f"{verdict}: {len(report.checks)} checks, {seconds} s")
        if not report.is_clean:
            sys.exit(PROBLEMS)


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
