"""Mutated files, each the whole way to its passages: a document, or a failure with a name.

    python -m bench.fuzz [--minutes N] [--seed S] [--only PART OF A NAME]

First those made by hand (documents/tests/fuzzing/hostile.py), then mutations of one file of every
format. The same seed makes the same files in the same order. A file that broke something is kept
in var/fuzz/, with what it broke. Exit code: 0 if nothing broke, else 1.
"""

import argparse
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
django.setup()

from django.conf import settings

from documents.tests.fuzzing.door import taken
from documents.tests.fuzzing.hostile import hostile
from documents.tests.fuzzing.mutations import mutated, seeds
from reading.parsers import ParseError

#: A small file that takes longer is told, although it is within the limit.
SLOW_SECONDS = 2.0


def main() -> int:
    asked = argparse.ArgumentParser(prog="bench.fuzz")
    asked.add_argument("--minutes", type=float, default=0.5)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only", default="")
    options = asked.parse_args()
    kept = Path(settings.VAR_DIR) / "fuzz"
    until = monotonic() + options.minutes * 60
    outcomes: Counter[str] = Counter()
    slowest = (0.0, "")
    for name, data, label in files(options.seed, options.only):
        if monotonic() > until:
            break
        started = monotonic()
        try:
            outcome = taken(name, data)
            outcomes[outcome.code if isinstance(outcome, ParseError) else "document"] += 1
        except Exception:
            outcomes["BROKEN"] += 1
            keep(kept, label, name, data)
        seconds = monotonic() - started
        slowest = max(slowest, (seconds, label))
        if seconds > SLOW_SECONDS:
            print(f"{seconds:.1f} s for {len(data):,} bytes: {label}", flush=True)
    print(f"{outcomes.total():,} files: {dict(outcomes.most_common())}")
    print(f"slowest {slowest[0]:.1f} s: {slowest[1]}")
    return int(outcomes["BROKEN"] > 0)


def files(seed: int, only: str) -> Iterator[tuple[str, bytes, str]]:
    """Name, bytes, and how to speak of it, without end."""
    for name, make in hostile().items():
        if only in name:
            yield name, make(), f"hostile-{name[:40]!r}"
    names = [name for name in seeds() if only in name]
    number = 0
    while names:
        random = Random(f"{seed}/{number}")
        name = random.choice(names)
        other = random.choice(list(seeds().values()))
        data = mutated(random, seeds()[name], other)
        # Sometimes under a wrong name: what it is decides.
        shown = random.choice(list(seeds())) if random.random() < 0.05 else name
        yield shown, data, f"{seed}-{number}-{shown}"
        number += 1


def keep(folder: Path, label: str, name: str, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    safe = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in label)
    (folder / safe).write_bytes(data)
    error = traceback.format_exc()
    (folder / f"{safe}.txt").write_text(f"{name!r}\n{error}", errors="replace")
    print(f"BROKEN {label}: {error.strip().splitlines()[-1][:300]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
