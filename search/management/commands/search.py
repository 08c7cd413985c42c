"""`manage.py search "…" --collection C`: the best passages, on a terminal or as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace
from common.console import Options, ServiceCommand, add_json_option
from common.options.commandline import add_options
from common.text import pluralized
from search.export import MAX_EXPORTED_HITS, export_hits
from search.filters import to_json
from search.hit_rows import row_lines
from search.log import record_search
from search.query_options import PageOptions, ScopeOptions, SearchQuery, SearchRequest
from search.results import Hit, SearchResult
from search.services import search

#: Facet values printed per line; `--json` prints all.
MAX_FACET_VALUES = 10


class Command(ServiceCommand):
    help = (
        "Search collections and print the best passages. Exit code: 0 searched, also where nothing"
        " was found; 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        add_options(parser, SearchRequest, skip={"q"})
        add_json_option(parser)
        parser.add_argument(
            "--csv",
            action="store_true",
            help=f"all hits, {MAX_EXPORTED_HITS:,} at most, as a table; without -k,"
            " --facet, --expand",
        )

    def run(self, options: Options) -> None:
        workspace = get_or_create_workspace(slug=options["workspace"])
        scope = ScopeOptions.pick(options).scope(user=None, workspace=workspace)
        query = SearchQuery.pick(options, q=options["query"])
        if options["csv"]:
            query = query.model_copy(update={"expand": "none"})
            for piece in export_hits(query, scope=scope, kind="csv", link=lambda hit: hit.url):
                self.stdout.write(piece.decode(), ending="")
            return
        result = search(query, scope=scope, **PageOptions.pick(options).model_dump())
        record_search(result=result, scope=scope, user=None, source="command")
        if options["json"]:
            self.stdout.write(
                json.dumps(result_json(result), ensure_ascii=False, indent=2, default=str)
            )
        else:
            self._print(result, options)

    def _print(self, result: SearchResult, options: Options) -> None:
        for note in result.notes:
            self.stderr.write(note)
        if result.suggestion and not result.is_corrected:
            self.stderr.write(f"Did you mean: {result.suggestion}")
        for hit in result.hits:
            heading, *lines = hit_lines(hit)
            self.stdout.write(self.style.MIGRATE_HEADING(f"{hit.rank}. {hit.title}") + heading)
            self.stdout.write("\n".join([*(f"   {line}" for line in lines), "", ""]))
        for name, values in result.facets.items() if options["facet"] else ():
            labels = ", ".join(
                f"{value.label} {value.count}" for value in values[:MAX_FACET_VALUES]
            )
            self.stdout.write(f"{name}: {labels or 'no value'}")
        methods = ", ".join(f"{arm.name} {arm.method}" for arm in result.arms)
        methods += f" · {result.fusion}" if len(result.arms) > 1 else ""
        listed = pluralized(result.total, "document" if options["group"] else "passage")
        listed = f"the best {listed}" if result.is_cut else listed
        text = listed if result.total == len(result.hits) else f"{len(result.hits)} of {listed}"
        self.stdout.write(f"{text} · {result.milliseconds:.0f} ms · {methods}")


def hit_lines(hit: Hit) -> Iterator[str]:
    """Version and headings, text, scores, and what the graph says."""
    heading = ", ".join(filter(None, [" > ".join(hit.heading_path), hit.location]))
    version = "" if hit.is_current else f" (version {hit.version}, superseded)"
    yield version + (f" · {heading}" if heading else "")
    if rows := row_lines(hit):
        yield from rows
    if hit.surroundings or not rows:
        text = hit.surroundings.text if hit.surroundings else hit.snippet.text
        yield " ".join(text.split())
    scores = {
        "similarity": (hit.similarity, "z.3f"),
        "bm25": (hit.lexical, "z.2f"),
        "rerank": (hit.rerank, "z.3f"),
        "graph": (hit.graph, ".2f"),
    }
    found = [
        f"{name} {score:{form}}" for name, (score, form) in scores.items() if score is not None
    ]
    yield f"{hit.collection_slug} · {' · '.join([f'fused {hit.fused:z.3f}', *found])}"
    if hit.path:
        yield "over " + " > ".join(stop.name for stop in hit.path)
    for passage in hit.related:
        over = " > ".join(stop.name for stop in passage.path[1:-1]) or "beside it"
        yield f"+ {passage.title} ({over}): {shortened(passage.text)}"


def shortened(text: str, *, characters: int = 160) -> str:
    """The text on one line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[:characters]}…"


def result_json(result: SearchResult) -> dict[str, Any]:
    """The result as plain data for JSON."""
    return {**asdict(result), "filter": to_json(result.filter)}
