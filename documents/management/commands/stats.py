"""`manage.py stats`: how much there is, and how fast it came in."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import filesizeformat

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.text import pluralized
from documents import services
from documents.management.cli import get_collection_by_slug
from documents.services import SiteStatistics

FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Documents, chunks, tokens, bytes, spaces, languages, media types and runs of the site or"
        " of one collection, and what each stage did a second in the last runs. Exit code: 0"
        " counted, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--collection", help="slug; the whole site where it is left out")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        collection = None
        if options["collection"]:
            try:
                collection = get_collection_by_slug(
                    workspace=options["workspace"], slug=options["collection"]
                )
            except RagsiteError as error:
                raise CommandError(str(error), returncode=FATAL) from error
        figures = services.collect_statistics(collection=collection)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(figures), ensure_ascii=False, indent=2))
            return
        for name, value in _lines(figures):
            self.stdout.write(f"{name:13} {value}")


def _lines(figures: SiteStatistics) -> list[tuple[str, str]]:
    lines = [
        ("documents", _counts(figures.documents)),
        ("besides", f"{figures.superseded:,} superseded versions, {figures.links:,} stored once"),
        ("chunks", f"{figures.chunks:,}, {pluralized(figures.tokens, 'token')}"),
        ("sources", f"{_size(figures.source_bytes)} read"),
        ("stored files", f"{figures.stored_files:,}, {_size(figures.stored_bytes)}"),
    ]
    lines += [
        (
            f"space {space['name']}",
            f"{pluralized(space['chunks'], 'chunk')}, index {_size(space['index_bytes'])}",
        )
        for space in figures.spaces
    ]
    lines += [
        ("languages", _counts(figures.languages)),
        ("media types", _counts(figures.media_types)),
        ("graph", _counts(figures.graph)),
        ("runs", _counts(figures.runs)),
    ]
    for name, stage in figures.stages.items():
        rates = ", ".join(f"{rate:,.0f} {what}/s" for what, rate in stage["rates"].items())
        lines.append(
            (name, f"{stage['seconds']:,.1f} s in {pluralized(figures.last_runs, 'run')}: {rates}")
        )
    lines += [(f"table {name}", _size(size)) for name, size in figures.table_bytes.items()]
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items()) or "none"


def _size(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")
