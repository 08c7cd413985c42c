"""What `manage.py graph` reads from files and writes to them."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, BinaryIO

from common.errors import InvalidInput
from common.showing import Shown, visible
from common.wording import counted
from documents.management.writing import written
from documents.transfer.format import STANDARD, open_for_reading
from graph import services
from graph.management.actions import Options, scope_from
from graph.scopes import GraphScope
from graph.services.lines import export_lines, import_lines

_SPOOLED = 16 * 1024 * 1024


def import_file(options: Options) -> Shown:
    """JSON Lines, all or none."""
    scope = scope_from(options)
    with _rereadable(options["file"]) as read:
        done = import_lines(
            scope=scope,
            read=read,
            strict=not options["lenient"],
            replace_props=options["replace_props"],
        )
    told = [
        f"{counted(done.nodes_created, 'node')} new, {done.nodes_updated:,} changed",
        f"{counted(done.edges_created, 'edge')} new, {done.edges_updated:,} changed",
    ]
    told += [f"{counted(done.stubs, 'node')} made for edges"] if done.stubs else []
    lines = ["; ".join(told)]
    if done.taken:
        lines.append(f"mean another node already: {', '.join(map(visible, done.taken))}")
    return Shown(asdict(done), tuple(lines))


@contextmanager
def _rereadable(name: str) -> Iterator[Callable[[], Iterable[bytes]]]:
    """A file that may be read again and again, standard input too."""
    if name != STANDARD:
        with open_for_reading(name):  # not there: said before anything begins
            yield lambda: _lines_of(name)
        return
    with tempfile.SpooledTemporaryFile(_SPOOLED) as copy, open_for_reading(name) as file:
        copy.writelines(file)

        def read() -> Iterable[bytes]:
            copy.seek(0)
            return copy

        yield read


def _lines_of(name: str) -> Iterator[bytes]:
    with open_for_reading(name) as file:
        yield from file


def export(options: Options) -> Shown:
    """The graph, or what is around some nodes, as a file."""
    scope = scope_from(options)
    parts = _exported(scope, options)
    sized = written(options["output"], lambda file: _write(file, parts))
    return Shown({"bytes": sized}, (counted(sized, "byte"),))


def _exported(scope: GraphScope, options: Options) -> Iterable[bytes]:
    around = {
        "ids": options["around"] or (),
        "hops": options["hops"],
        "cap": options["limit"],
    }
    if options["format"] == "graphml":
        return services.export_graphml(scope=scope, **around)
    if options["format"] == "jsonl":
        if options["around"]:
            raise InvalidInput("jsonl is the whole graph. Leave --around out, or use graphml.")
        return export_lines(scope=scope, extracted=options["extracted"])
    if not options["around"]:
        raise InvalidInput("json is a drawing of what is around some nodes: name them by --around.")
    return [_drawn(scope, around)]


def _drawn(scope: GraphScope, around: Mapping[str, Any]) -> bytes:
    found = services.subgraph(scope=scope, **around)
    return json.dumps(services.export_cytoscape(found), ensure_ascii=False).encode()


def _write(file: BinaryIO, parts: Iterable[bytes]) -> int:
    return sum(file.write(part) for part in parts)
