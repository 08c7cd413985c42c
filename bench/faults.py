"""Random schedules of work and faults, against real processes.

    python -m bench.faults [--schedules 20] [--seed 1] [--at-once 4]

Servers of its own are started in a folder that goes at the end. Each schedule interleaves uploads,
deletions, cancellations, questions, memories and graph writes with workers killed -9, a broker and
a database that crash, cut connections, messages delivered twice, and an embedder that is slow or
away.
When the site has come to rest, everything must be there as it was asked for, once, and `validate`
must find nothing. Files that the dead had still to remove are swept first, as the scheduler does.
Those that run at once share the servers, and each other's faults. Ends with 1 at the first schedule
where something is not so, and says how to repeat it.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

from tests.instances import instance_dir

_ROOT = Path(__file__).resolve().parent.parent
SCHEDULES = 20
AT_ONCE = 4
#: Short, because every fault waits for one; with many attempts, because a busy machine may take the
#: living for dead.
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "ragsite.settings",
    "EMBEDDER_BACKEND": "tests.schedules.embedder.FaultyEmbedder",
    "RAGSITE_REDIS_DB": "0",
    "RAGSITE_INGESTION_LEASE_SECONDS": "1",
    "RAGSITE_INGESTION_MAX_ATTEMPTS": "50",
    "RAGSITE_GRAPH_EXTRACTION_MAX_ATTEMPTS": "50",
    "RAGSITE_RECOVERY_SECONDS": "0.5",
    "LOG_LEVEL": "ERROR",
}
_UNSET = ("DATABASE_URL", "REDIS_URL", "EMBEDDERS", "EMBEDDER_OPTIONS")


def main() -> int:
    options = _options()
    with nullcontext(options.var) if options.var else instance_dir() as var:
        _set_up(var)
        if _run(var, options):
            return 1
        _sweep()
        return _validate()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--seed", type=int, default=1, help="of the first; the next has one more")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--var", type=Path, help="a folder whose servers have a database already")
    return parser.parse_args()


def _set_up(var: Path) -> None:
    os.environ.update(ENVIRONMENT, RAGSITE_VAR_DIR=str(var), MEDIA_ROOT=str(var / "media"))
    for variable in _UNSET:
        os.environ[variable] = ""
    os.environ.pop("RAGSITE_DATABASE_POOL_SIZE", None)
    from ragsite import bootstrap

    bootstrap.prepare(["manage.py", "evaluate"])


def _run(var: Path, options: argparse.Namespace) -> bool:
    """Whether one of them failed."""
    from tests.schedules.plan import schedule
    from tests.schedules.running import run_schedule
    from tests.schedules.servers import Servers

    servers = Servers(var)
    seeds = range(options.seed, options.seed + options.schedules)
    pool = ThreadPoolExecutor(options.at_once)
    try:
        servers.keep_up()
        for outcome in pool.map(lambda seed: run_schedule(seed, servers), seeds):
            steps = "; ".join(map(str, schedule(outcome.seed)))
            print(f"{outcome.seed}: {outcome.seconds:.1f} s, {outcome.refused} refused: {steps}")
            sys.stdout.flush()
            if outcome.wrong:
                _tell(var, options, outcome.seed, outcome.wrong)
                return True
        return False
    finally:
        pool.shutdown(cancel_futures=True)
        servers.stop()


def _tell(var: Path, options: argparse.Namespace, seed: int, wrong: Sequence[str]) -> None:
    for log in sorted(var.glob("*.log")):
        print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
    print(f"With seed {seed}:", *wrong, sep="\n")
    first = seed - (seed - options.seed) % options.at_once
    print(
        f"Repeat it: python -m bench.faults --schedules 1 --seed {seed}, or with those beside it:"
        f" --schedules {options.at_once} --seed {first} --at-once {options.at_once}"
    )


def _sweep() -> None:
    """As the scheduler does, but at once: nobody brings anything any more."""
    from django.db import connections

    from documents.ingestion.stored_files import remove_orphaned_files

    connections.close_all()  # they were cut
    removed = remove_orphaned_files(age=timedelta(0))
    print(f"{removed} files were swept that belonged to no document", flush=True)


def _validate() -> int:
    """As people ask it."""
    command = [sys.executable, "manage.py", "validate"]
    return subprocess.run(command, cwd=_ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
