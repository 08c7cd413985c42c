"""How soon the site is there, what it holds in memory when nobody asks, and how soon commands are.

    python -m bench.start [PORT]

Starts `manage.py up` on the servers and data of RAGSITE_VAR_DIR, which `manage.py demo` fills, and
stops it afterwards. Memory is proportional (PSS): what processes share is divided among them.
"""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from secrets import token_hex
from statistics import median
from time import monotonic, perf_counter, sleep
from urllib.request import Request, urlopen

import psutil  # type: ignore[import-untyped]

MANAGE = [sys.executable, "manage.py"]
READY_SECONDS = 300.0
#: Until parsers have ended and models that nobody asked for have left memory: see
#: `reading.sandbox` and `ragsite.idle_memory`.
IDLE_SECONDS = 30.0, 330.0
CHECK_SECONDS = 10.0
#: Of a core, by all processes together.
IDLE_SHARE = 0.1
ROUNDS = 5
COMMANDS = (
    ["check"],
    ["services", "status"],
    ["search", "-k", "1"],
    ["ask"],
)
KINDS = ("gunicorn", "ingest@", "embed@", "reading.sandbox", "manage.py up", "postgres", "valkey")


def main(port: int) -> None:
    run(["demo"])
    print(f"{'without the site':48}")
    report_commands()
    began = perf_counter()
    site = subprocess.Popen([*MANAGE, "up", f"--port={port}"], stdout=subprocess.PIPE, text=True)
    try:
        assert site.stdout
        for state in ("answers", "is ready"):
            if not any(f"ragsite {state} at" in line for line in site.stdout):
                sys.exit("the site did not start")
            print(f"{f'ragsite {state} after':48}{perf_counter() - began:7.2f} s")
        report_requests(port)
        wait_until_idle(site.pid)
        began = monotonic()
        for seconds in IDLE_SECONDS:
            sleep(began + seconds - monotonic())
            print(f"idle for {seconds:.0f} s")
            report_memory(site.pid)
        print("beside the site")
        report_commands()
    finally:
        site.send_signal(signal.SIGTERM)
        site.communicate(timeout=60)


def report_requests(port: int) -> None:
    """The first searches that anybody asks for, each a new question."""
    made = ["apikeys", "create", "--user=demo", "--name=bench", "--scope=read", "--json"]
    key = json.loads(run(made))
    for number, question in enumerate(("where are figures kept", "who may read a passage"), 1):
        began = perf_counter()
        path = f"/api/v1/search/?q={question.replace(' ', '+')}"
        headers = {"Authorization": f"Bearer {key['secret']}"}
        with urlopen(Request(f"http://127.0.0.1:{port}{path}", headers=headers)) as answer:
            degraded = json.load(answer).get("degraded")
        said = f"search {number}{', degraded' if degraded else ''}"
        print(f"{said:48}{(perf_counter() - began) * 1000:7.0f} ms")
    run(["apikeys", "revoke", str(key["id"])])


def wait_until_idle(site: int) -> None:
    """Until what the workers do with new documents is done."""
    before = 0.0
    while True:
        used = 0.0
        for process in processes_of(site):
            with suppress(psutil.NoSuchProcess):
                used += sum(process.cpu_times()[:2])
        if abs(used - before) < IDLE_SHARE * CHECK_SECONDS:
            return
        before = used
        sleep(CHECK_SECONDS)


def processes_of(site: int) -> set[psutil.Process]:
    """Of the site and of its embedded servers."""
    states = json.loads(run(["services", "status", "--json"]))["services"]
    roots = [site, *(state["pid"] for state in states if state["pid"])]
    return {p for root in map(psutil.Process, roots) for p in (root, *root.children(True))}


def report_memory(site: int) -> None:
    """By kind of process."""
    held: dict[str, list[int]] = {}
    for process in processes_of(site):
        try:
            line = " ".join(process.cmdline())
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        except (psutil.NoSuchProcess, OSError):
            continue  # it has just ended
        kind = next((kind for kind in KINDS if kind in line), line[:40])
        match = re.search(r"^Pss: +(\d+)", rollup, re.MULTILINE)
        held.setdefault(kind, []).append(int(match[1]) if match else 0)
    for kind, sizes in sorted(held.items()):
        print(f"{f'{kind.strip()} ({len(sizes)})':48}{sum(sizes) / 1024:7.0f} MB")
    print(f"{'all processes':48}{sum(map(sum, held.values())) / 1024:7.0f} MB")


def report_commands() -> None:
    """Medians."""
    for command in COMMANDS:
        taken = []
        for _ in range(ROUNDS):
            began, before = perf_counter(), getrusage(RUSAGE_CHILDREN)
            new = [f"how is question {token_hex(4)} embedded?"]  # no vector of it is cached
            run([*command, *(new if command[0] in ("search", "ask") else [])])
            after = getrusage(RUSAGE_CHILDREN)
            busy = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            taken.append((perf_counter() - began, busy))
        seconds, processor = map(median, zip(*taken, strict=True))
        print(f"{' '.join(command):48}{seconds:7.2f} s {processor:7.2f} s of processor")


def run(command: list[str]) -> str:
    done = subprocess.run([*MANAGE, *command], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8765)
