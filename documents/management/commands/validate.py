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
from documents.management.naming import collection_named
from documents.validation import Report, validate

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
            report = validate(collection_id=self._collection_id(options), fix=options["fix"])
        except RagsiteError as error:
            raise CommandError(str(error), returncode=FATAL) from error
        seconds = round(perf_counter() - started, 3)
        if options["json"]:
            content = {**content_of(report), "seconds": seconds}
            self.stdout.write(json.dumps(content, ensure_ascii=False, indent=2))
        else:
            self._print(report, seconds)
        if not report.is_clean:
            sys.exit(PROBLEMS)

    def _collection_id(self, options: dict[str, Any]) -> int | None:
        if not options["collection"]:
            return None
        return collection_named(workspace=options["workspace"], slug=options["collection"]).pk

    def _print(self, report: Report, seconds: float) -> None:
        for name, count in report.fixed.items():
            self.stdout.write(f"fixed: {name}: {count:,}")
        for finding in report.findings:
            self.stdout.write(str(finding))
        found = len(report.findings)
        verdict = "clean" if report.is_clean else f"{found} problem{'s' * (found > 1)}"
        self.stdout.write(f"{verdict}: {len(report.checks)} checks, {seconds} s")


def content_of(report: Report) -> dict[str, Any]:
    """What a program wants to know of a validation."""
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
