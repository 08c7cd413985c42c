"""`manage.py spaces list|add|set|build-index|drop|stats`: the embedding spaces of the site."""

from argparse import ArgumentParser
from typing import Any

from django.template.defaultfilters import filesizeformat

from common.console import CommandOutput, Options, ServiceCommand
from common.errors import InvalidInput
from documents import services
from documents.services import SpaceReport
from documents.spaces import INDEX_TYPES, METRICS, PRECISIONS, SEARCH_OPTIONS
from inference.model_registry import alias_of

AUTO = "auto"
EF_SEARCH = "candidates at searching, 1 to 1000 (auto: the root of the chunks, 64 at least)"
PROBES = "lists looked at, 1 to 32768 (auto: the root of the lists, 10 at least)"


def _number_or_auto(text: str) -> int | str:
    return AUTO if text == AUTO else int(text)


_number_or_auto.__name__ = "number"  # in argparse's refusal


class Command(ServiceCommand):
    help = (
        "Embedding spaces: which model's vectors there are, and how they are indexed. To move"
        " chunks from one to another use `manage.py reembed`. Exit code: 0 done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        action = self.add_actions(parser)
        action("list", list_spaces, "all spaces")
        stats = action("stats", space_statistics, "what a space holds, or each of them")
        stats.add_argument("name", nargs="?", default="")
        add = action("add", self._add, "a new, empty space for an embedder's vectors")
        add.add_argument("name", help="lower-case letters, digits, hyphens")
        add.add_argument("--embedder", default="default", help="alias of INFERENCE['embedder']")
        add.add_argument(
            "--metric", default="cosine", help=f"{', '.join(METRICS)}, or what others call them"
        )
        add.add_argument("--index", default="hnsw", choices=INDEX_TYPES)
        add.add_argument(
            "--precision",
            choices=PRECISIONS,
            help="of the index (half; above 4,000 dimensions binary)",
        )
        for option, meaning in (
            ("m", "HNSW: links of a vector (16)"),
            ("ef-construction", "HNSW: candidates at building (64)"),
            ("ef-search", f"HNSW: {EF_SEARCH}"),
            ("lists", "IVFFlat: lists (one for 1,000 rows)"),
            ("probes", f"IVFFlat: {PROBES}"),
        ):
            add.add_argument(f"--{option}", type=int, help=meaning)
        add.add_argument("--instruction", default="", help="what queries tell the model to find")
        change = action("set", set_options, "how much of its index searches look at")
        change.add_argument("name")
        change.add_argument("--ef-search", type=_number_or_auto, help=f"HNSW: {EF_SEARCH}")
        change.add_argument("--probes", type=_number_or_auto, help=f"IVFFlat: {PROBES}")
        build = action("build-index", build_index, "build its index while people search")
        build.add_argument("name")
        build.add_argument("--rebuild", action="store_true", help="also where there is one")
        action("drop", drop_space, "remove a space that nobody uses").add_argument("name")

    def _add(self, options: Options) -> CommandOutput:
        names = ("m", "ef_construction", "ef_search", "lists", "probes")
        space, remarks = services.add_space(
            name=options["name"],
            embedder=options["embedder"],
            metric=options["metric"],
            index_type=options["index"],
            precision=options["precision"],
            options={name: options[name] for name in names if options[name] is not None},
            query_instruction=options["instruction"],
        )
        lines = [
            f"{space}: {space.index_type}, {space.precision}, {space.metric}.",
            f"To use it: manage.py reembed --to {space.name}",
        ]
        return CommandOutput(lines=lines, warnings=remarks)


def list_spaces(options: Options) -> CommandOutput:
    reports = services.space_reports()
    rows = [("name", "model", "dimensions", "metric", "index", "state", "chunks")]
    rows += [
        (
            f"{report.space.name} *" if report.space.is_default else report.space.name,
            report.space.model_name,
            str(report.space.dimensions),
            report.space.metric,
            describe_index(report),
            report.space.state,
            f"{report.chunks:,}",
        )
        for report in reports
    ]
    return CommandOutput(
        list(map(space_report, reports)), ["* new collections use it"], rows[0], rows[1:]
    )


def space_statistics(options: Options) -> CommandOutput:
    reports = [space_report(report) for report in services.space_reports(name=options["name"])]
    lines: list[str] = []
    for report in reports:
        lines += [f"{name.replace('_', ' '):18} {value}" for name, value in report.items()]
        lines.append("")
    return CommandOutput(reports, lines)


def set_options(options: Options) -> CommandOutput:
    given = {name: options[name] for name in SEARCH_OPTIONS if options[name] is not None}
    if not given:
        raise InvalidInput("Say --ef-search or --probes: a number, or auto.")
    space = services.change_search_options(
        space=services.get_space(options["name"]),
        **{name: None if value == AUTO else value for name, value in given.items()},
    )
    lines = [f"{name}: {space.index_options.get(name, 'automatic')}" for name in given]
    return CommandOutput(lines=lines)


def build_index(options: Options) -> CommandOutput:
    space = services.get_space(options["name"])
    built = services.build_space_index(space=space, rebuild=options["rebuild"])
    line = "built" if built else "there is one already; --rebuild makes it anew"
    return CommandOutput(lines=[line])


def drop_space(options: Options) -> CommandOutput:
    services.drop_space(space=services.get_space(options["name"]))
    return CommandOutput(lines=["dropped"])


def describe_index(report: SpaceReport) -> str:
    """Type, precision and size of the index, or why there is none."""
    space = report.space
    if space.index_type == space.IndexType.NONE:
        return "none (exact)"
    kind = f"{space.index_type} {space.precision}"
    if report.index is None:
        return f"{kind}, not built"
    if not report.index.valid:
        return f"{kind}, broken: build-index"
    return f"{kind}, {filesizeformat(report.index.bytes)}".replace("\xa0", " ")


def space_report(report: SpaceReport) -> dict[str, Any]:
    """A space as a dictionary for `--json`."""
    space = report.space
    index_state = "none"
    if report.index is not None:
        index_state = "valid" if report.index.valid else "broken"
    return {
        "name": space.name,
        "embedder": alias_of(space.embedder, space.model_name),
        "model": space.model_name,
        "dimensions": space.dimensions,
        "metric": space.metric,
        "precision": space.precision,
        "index": space.index_type,
        "index_options": space.index_options,
        "index_state": index_state,
        "index_bytes": report.index.bytes if report.index else 0,
        "state": space.state,
        "default": space.is_default,
        "collections": report.collections,
        "chunks": report.chunks,
    }
