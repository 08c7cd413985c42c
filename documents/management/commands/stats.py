"""`manage.py stats`: how much there is, and how fast it came in."""

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict

from django.template.defaultfilters import filesizeformat

from common.console import CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents import services
from documents.management.cli import add_collection_options, find_collection
from documents.services import SiteStatistics


class Command(ServiceCommand):
    help = (
        "Documents, chunks, tokens, bytes, spaces, languages, media types and runs of the site or"
        " of one collection, and what each stage did a second in the last runs. Exit code: 0"
        " counted, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_collection_options(parser, "slug; the whole site where it is left out", required=False)

    def is_about_site(self, options: Options) -> bool:
        return not options["collection"]

    def run(self, options: Options) -> CommandOutput:
        figures = services.collect_statistics(collection=find_collection(options))
        lines = [f"{name:13} {value}" for name, value in statistics_rows(figures)]
        return CommandOutput(asdict(figures), lines)


def statistics_rows(figures: SiteStatistics) -> list[tuple[str, str]]:
    lines = [
        ("documents", _counts(figures.documents)),
        ("besides", f"{figures.superseded:,} superseded versions, {figures.links:,} stored once"),
        ("chunks", f"{figures.chunks:,}, {pluralized(figures.tokens, 'token')}"),
        ("with tokens", pluralized(figures.with_tokens, "chunk")),
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
