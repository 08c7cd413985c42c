"""Memory and time of `manage.py ingest` over files that are as large as may be.

    python -m bench.folder [NAME ...]

A text of 99 MB, the same with one emoji (which makes Python keep four bytes a character), a PDF of
5,000 full pages, a workbook of 100,000 rows, and a folder with every format and every kind of
broken file. All of them unless some are named. Each goes into a fresh site on embedded servers of
its own, with the hashing embedder; memory is that of the command and of its parser process.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from documents.tests.factories_folder import everything
from reading.tests.factories_files import pdf
from reading.tests.factories_office import xlsx

ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 1024**2
MUST_STAY_BELOW = 1.5 * 1024 * MEBIBYTE
TEXT_BYTES = 99_000_000
PAGES, LINES = 5000, 40
ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run reported, its wall time, and the most bytes of memory that it had at once."""

    report: dict[str, Any]
    seconds: float
    memory: int


def main(names: list[str]) -> int:
    table = Table(
        "files", "chunks", "failed", "seconds", "parsing", "memory", title="Largest files"
    )
    too_much = False
    for name in names or list(MAKERS):
        with TemporaryDirectory() as place:
            folder, var_dir = Path(place, "folder"), Path(place, "var")
            folder.mkdir()
            MAKERS[name](folder)
            measured = ingest(folder, var_dir)
        report = measured.report
        table.add_row(
            name,
            f"{report['chunks']['ready']:,}",
            str(report["documents"]["failed"]),
            f"{measured.seconds:.0f}",
            f"{report['timings'].get('parse', 0.0):.1f}",
            f"{measured.memory / MEBIBYTE:,.0f} MiB",
        )
        too_much |= measured.memory > MUST_STAY_BELOW
    Console().print(table)
    return int(too_much)


def ingest(folder: Path, var_dir: Path) -> Measured:
    """Ingest the folder into a fresh site."""
    environment = {
        **os.environ,
        "RAGSITE_VAR_DIR": str(var_dir),
        "EMBEDDER_BACKEND": "inference.backends.hashing.HashingEmbedder",
    }
    for variable in ("DATABASE_URL", "REDIS_URL", "EMBEDDER_OPTIONS", "EMBEDDERS"):
        environment.pop(variable, None)
    manage = [sys.executable, "manage.py"]
    started = perf_counter()
    try:
        process = psutil.Popen(
            [*manage, "ingest", str(folder), "--collection=c", "--suspend-index", "--json"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
        )
        most = 0
        while process.poll() is None:
            most = max(most, memory(process))
            Event().wait(0.02)
        return Measured(json.load(process.stdout), perf_counter() - started, most)
    finally:
        subprocess.run([*manage, "services", "stop"], cwd=ROOT, env=environment, check=True)


def memory(process: psutil.Process) -> int:
    """Bytes that the command and its parsers have; its servers are no part of it."""
    used = 0
    try:
        used = process.memory_info().rss
        for child in process.children():
            if "reading.sandbox" in child.cmdline():
                used += child.memory_info().rss
    except psutil.NoSuchProcess:
        pass  # it ended meanwhile
    return used


def _text(folder: Path, *, emoji: str = "") -> None:
    parts, size = [emoji], 0
    while size < TEXT_BYTES - 1000:
        parts.append(f"{'. '.join(_line() for _ in range(5))}.\n\n")
        size += len(parts[-1])
    (folder / "large.txt").write_text("".join(parts))


def _pdf(folder: Path) -> None:
    pages = [[_line() for _ in range(LINES)] for _ in range(PAGES)]
    (folder / "large.pdf").write_bytes(pdf(*pages))


def _workbook(folder: Path) -> None:
    rows = [(number, *_line().split()[:3], _line()) for number in range(ROWS)]
    columns = ("number", "name", "city", "kind", "note")
    (folder / "large.xlsx").write_bytes(xlsx({"Sheet": [columns, *rows]}))


def _line() -> str:
    return " ".join(_random.choices(_words, k=12))


_random = random.Random(1)
_words = [
    "".join(_random.choices("abcdefghijklmnoprstuvw", k=length))
    for length in [2, 4, 6, 8, 10] * 4000
]

MAKERS: Mapping[str, Callable[[Path], Any]] = {
    "text": _text,
    "emoji": lambda folder: _text(folder, emoji="😀"),
    "pdf": _pdf,
    "workbook": _workbook,
    "everything": lambda folder: everything(folder, pages=PAGES),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
