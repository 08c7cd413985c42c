"""Sources on schedules beside people who search: how much slower is a search?

    python -m bench.source_load [--sources 20] [--files 100] [--seconds 60] [--cores 0,1]

Starts `manage.py up` in a folder of its own, with the hashing embedder, and so many sources, each a
folder with so many files. Two clients search by turns while nothing else happens, and while each
source is read every minute and one file in twenty changes in that time. Prints milliseconds of
both, and ends with 1 where the 95th percentile is more than 1.5 times that of searches alone.
"""

import argparse
import json
import random
import sys
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import monotonic, perf_counter
from urllib.parse import urlencode

import psutil
from rich.console import Console
from rich.table import Table

from bench.mixed import running_site, set_up, wait_for_site
from tests.instances import instance_dir

CLIENTS, PAUSE_SECONDS = 2, 0.2
ROUNDS = 2
MOST = 1.5
#: One file in so many changes within a minute.
CHANGING = 20
READY_SECONDS = 900.0
WORDS = (
    *("rail", "leave", "bicycle", "office", "desk", "harbour", "lamp", "winter", "invoice"),
    *("travel", "keyboard", "meeting", "notice", "kettle", "garden", "ladder", "window"),
    *("ticket", "parcel", "engine", "paper", "bridge", "camera", "copper"),
)


def main() -> int:
    options = _options()
    choose = random.Random(7)
    with instance_dir() as var:
        key = set_up(var)
        folders = [var / "places" / str(number) for number in range(options.sources)]
        for folder in folders:
            folder.mkdir(parents=True)
            for number in range(options.files):
                _write(folder / f"{number}.md", choose)
        _make_sources(folders)
        with running_site(var) as (pid, port):
            wait_for_site(port, pid)
            _wait_until_read(options.sources * options.files)
            if options.cores:
                for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
                    process.cpu_affinity([int(core) for core in options.cores.split(",")])
            times: dict[str, list[float]] = {"alone": [], "beside": []}
            _schedule("")
            _search(port, key, 10.0)  # so that each process has imported all
            runs = _runs()
            for _ in range(ROUNDS):
                _schedule("")
                times["alone"] += _search(port, key, options.seconds)
                _schedule("1")
                enough = Event()
                changing = Thread(target=_change, args=(folders, options.files, choose, enough))
                changing.start()
                times["beside"] += _search(port, key, options.seconds)
                enough.set()
                changing.join()
            return _report(times, _runs() - runs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--files", type=int, default=100, help="of each")
    parser.add_argument("--seconds", type=float, default=60, help="of each of four measurements")
    parser.add_argument("--cores", default="", help="for the site, such as 0,1; else all")
    return parser.parse_args()


def _write(path: Path, choose: random.Random) -> None:
    path.write_text(" ".join(choose.choices(WORDS, k=200)) + ".\n")


def _make_sources(folders: list[Path]) -> None:
    from django.db import connections

    from documents.models import Collection
    from sources.services import create_source

    for folder in folders:
        create_source(
            collection=Collection.objects.get(slug="notes"),
            name=f"Folder {folder.name}",
            connector="folder",
            options={"path": str(folder)},
            schedule="1",
        )
    connections.close_all()


def _wait_until_read(count: int) -> None:
    from documents.models import Document

    deadline = monotonic() + READY_SECONDS
    while (ready := Document.objects.filter(status="ready").count()) < count:
        if monotonic() > deadline:
            raise SystemExit(f"only {ready:,} of {count:,} files were read")
        Event().wait(1.0)


def _schedule(schedule: str) -> None:
    """Of all sources; empty: none is read, once those that are being read have ended."""
    from sources.models import DataSource
    from sources.services import update_source

    for source in DataSource.objects.all():
        update_source(source=source, schedule=schedule)
    while not schedule and DataSource.objects.filter(state="running").exists():
        Event().wait(0.2)


def _runs() -> int:
    from sources.models import DataSourceRun

    return DataSourceRun.objects.filter(state=DataSourceRun.State.SUCCEEDED).count()


def _change(folders: list[Path], files: int, choose: random.Random, enough: Event) -> None:
    pause = 60.0 * CHANGING / (len(folders) * files)
    while not enough.wait(pause):
        _write(choose.choice(folders) / f"{choose.randrange(files)}.md", choose)


def _search(port: int, key: str, seconds: float) -> list[float]:
    """Milliseconds of each search."""
    times: list[float] = []
    enough = Event()

    def ask(seed: int) -> None:
        choose = random.Random(seed)
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Bearer {key}"}
        while not enough.wait(PAUSE_SECONDS):
            asked = urlencode({"q": " ".join(choose.sample(WORDS, 3))})
            began = perf_counter()
            connection.request("GET", f"/api/v1/search/?{asked}", headers=headers)
            answer = connection.getresponse()
            hits = json.loads(answer.read())["hits"]
            assert hits, "a search that finds nothing measures nothing"
            times.append((perf_counter() - began) * 1000)

    clients = [Thread(target=ask, args=(seed,)) for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    enough.wait(seconds)
    enough.set()
    for client in clients:
        client.join()
    return times


def _report(times: dict[str, list[float]], runs: int) -> int:
    table = Table("searches", "count", "p50 ms", "p95 ms", title=f"{runs:,} runs of sources")
    high = {name: sorted(each)[int(len(each) * 0.95)] for name, each in times.items()}
    for name, each in times.items():
        table.add_row(name, f"{len(each):,}", f"{median(each):.0f}", f"{high[name]:.0f}")
    ratio = high["beside"] / high["alone"]
    console = Console()
    console.print(table)
    console.print(f"p95 beside sources is {ratio:.2f} times that alone; {MOST} may be.")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
