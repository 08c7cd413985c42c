"""How long a site of an earlier release takes to be upgraded, and how long it cannot be searched.

    cd CHECKOUT && .venv/bin/python …/bench/upgrade.py fill 100000
    .venv/bin/python -m bench.upgrade run CHECKOUT [SECONDS …]

`fill` is run by the release's own code, in its checkout: it puts passages of invented words and
random vectors, which are the slowest to index, into the empty database of DATABASE_URL. `run`
upgrades that database with the code at hand, while the release's own code searches it; stops that
one, upgrades the rest, and searches with the new code. The upgrade is killed with SIGKILL after
each of the given SECONDS and begun again. Prints what it took, and what the searches saw.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep, time
from typing import Any

WORDS_A_PASSAGE = 80
PASSAGES_A_DOCUMENT = 20
VOCABULARY = 40_000
_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
_SECONDS_BETWEEN_SEARCHES = 2


def words() -> list[str]:
    """Invented words, the most frequent ones first."""
    return [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES][:VOCABULARY]


def set_up() -> None:
    """Django, of the checkout in the working directory."""
    sys.path.insert(0, str(Path.cwd()))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django

    django.setup()


def fill(count: int) -> None:
    """Put `count` passages into the site's database."""
    import numpy as np

    set_up()
    from django.db import connection

    from accounts.services import ensure_login, get_or_create_workspace
    from documents.models import Document
    from documents.services import get_or_create_collection

    random = np.random.default_rng(7)
    vocabulary = words()
    shares = 1 / np.arange(1, len(vocabulary) + 1)
    workspace = get_or_create_workspace()
    ensure_login(username="bench", workspace=workspace)
    collection = get_or_create_collection(workspace=workspace, slug="large")
    space = collection.space
    documents = Document.objects.bulk_create(
        Document(
            workspace=workspace,
            collection=collection,
            key=f"document-{number}",
            title=f"Document {number}",
            media_type="text/plain",
            status="ready",
            content_sha256=f"{number:064x}",
            chunk_count=PASSAGES_A_DOCUMENT,
            token_count=PASSAGES_A_DOCUMENT * 100,
        )
        for number in range(count // PASSAGES_A_DOCUMENT)
    )
    columns = (
        "workspace_id, collection_id, document_id, space_id, ordinal, key, text, context,"
        ' heading_path, summary, token_count, start, "end", media_type, metadata, language,'
        " embedding, content_sha256"
    )
    with connection.cursor() as cursor:
        cursor.execute(space.sql.drop_index())
        with cursor.copy(f"COPY documents_chunk ({columns}) FROM STDIN") as copy:
            for number in range(len(documents) * PASSAGES_A_DOCUMENT):
                chosen = random.choice(len(vocabulary), WORDS_A_PASSAGE, p=shares / shares.sum())
                text = " ".join(vocabulary[each] for each in chosen)
                vector = random.normal(size=space.dimensions)
                vector /= np.linalg.norm(vector)
                document, ordinal = divmod(number, PASSAGES_A_DOCUMENT)
                first = ordinal * 1000
                copy.write_row(
                    (
                        *(workspace.pk, collection.pk, documents[document].pk, space.pk, ordinal),
                        *("", text, f"Document {document}", "{}", "", 100, first),
                        *(first + len(text), "text/plain", "{}", "english"),
                        f"[{','.join(f'{x:.5f}' for x in vector)}]",
                        f"{number:064x}",
                    )
                )
        cursor.execute(space.sql.create_index(rows=count))
        cursor.execute("ANALYZE")


def search_on(file: Path) -> None:
    """Search every two seconds over the API until killed; a line for each search: when, what it
    took in milliseconds, and its hits or -1 where it failed."""
    set_up()
    from django.contrib.auth import get_user_model
    from django.test import Client

    from accounts.services import ensure_login, get_or_create_workspace

    ensure_login(username="bench", workspace=get_or_create_workspace())
    client = Client(raise_request_exception=False)
    client.force_login(get_user_model().objects.get(username="bench"))
    vocabulary = words()
    with file.open("a", buffering=1) as written:
        for number in range(1_000_000):
            query = f"{vocabulary[number % 997 + 50]} {vocabulary[number % 1009 + 500]}"
            started = perf_counter()
            answer = client.get("/api/v1/search/", {"q": query, "k": "10"})
            spent = perf_counter() - started
            hits = len(answer.json()["hits"]) if answer.status_code == 200 else -1
            written.write(f"{time():.3f} {spent * 1000:.1f} {hits}\n")
            sleep(_SECONDS_BETWEEN_SEARCHES)


def run(checkout: Path, kills: list[float]) -> None:
    """Upgrade the database of DATABASE_URL, filled by the code in `checkout`."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def searching(folder: Path, name: str, environment: dict[str, str]) -> Any:
        """A process that searches; returns with its first answer."""
        said = Path(tempfile.gettempdir(), f"upgrade-{name}.txt")
        said.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "search", str(said)],
            cwd=folder,
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        while not (said.exists() and said.read_text()):
            sleep(0.1)
        return process, said

    def upgrade(seconds: float | None) -> dict[str, Any] | None:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "upgrade", "--json"],
            env=own,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return None
        return json.loads(said)

    old, old_said = searching(checkout, "old", dict(os.environ))
    sleep(20)
    started, before = monotonic(), _server_seconds()
    for seconds in kills:
        print(f"killed after {seconds} s" if upgrade(seconds) is None else "ended before")
    done = upgrade(None)
    spent = _server_seconds() - before
    print(f"old site at work: {monotonic() - started:.1f} s, server's CPU {spent:.0f} s", done)
    old.kill()
    old.wait()
    stopped = time()
    done = upgrade(None)
    print(f"old site stopped: {time() - stopped:.1f} s", done)
    new, new_said = searching(Path.cwd(), "new", own)
    print(f"first answer of the new one {time() - stopped:.1f} s after the old one's stop")
    sleep(20)
    new.kill()
    for said in (old_said, new_said):
        rows = [line.split() for line in said.read_text().splitlines()]
        took = sorted(float(row[1]) for row in rows)
        failed = sum(row[2] == "-1" for row in rows)
        print(
            f"{said.stem}: {len(rows)} searches, {failed} failed; ms: p50 {median(took):.0f},"
            f" p95 {took[len(took) * 95 // 100]:.0f}, max {took[-1]:.0f}"
        )


def _server_seconds() -> float:
    """Processor time of the PostgreSQL of DATABASE_URL, on this machine, and of all its processes
    that have ended."""
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"]) as database:
        (row,) = database.execute("SELECT pg_read_file('postmaster.pid')").fetchall()
    times = Path(f"/proc/{row[0].split()[0]}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, times[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", count]:
            fill(int(count))
        case ["search", name]:
            search_on(Path(name))
        case ["run", folder, *seconds]:
            run(Path(folder), [float(each) for each in seconds])
        case _:
            sys.exit(__doc__)
