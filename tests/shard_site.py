"""What tests/test_shards.py has the site do, in a process with the shards in its settings.

python -m tests.shard_site begin | answers | load NAME FOLDER | facts NAME | times COUNT |
        leave USERNAME SLUG | serve
"""

import json
import os
import runpy
import sys
import traceback
from collections import Counter
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter, sleep
from typing import Any, NoReturn

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
django.setup()

from django.conf import settings  # noqa: E402 (Django is set up first)
from django.db import connections  # noqa: E402
from django.test import Client  # noqa: E402

from accounts.models import Membership, User, Workspace  # noqa: E402
from common.shards import on_shard  # noqa: E402
from scripts.keep_release import QUESTIONS, Visitor, answers, fill  # noqa: E402

#: Workspaces by the shard that they begin on, as far as there are shards.
SLUGS = {"alpha": "", "beta": "east", "gamma": "west"}
#: As many as it takes to tell the servers apart: one is about what not everybody may see.
ASKED = QUESTIONS[::4]


#: Seconds between requests of a thread of the load: of the workspace that something befalls, and of
#: the others.
PAUSES = {"alpha": 0.3, "beta": 0.05, "gamma": 0.3}


class Statements:
    """Counts statements of the process by the server that they were sent to."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        for alias in connections:
            connections[alias].execute_wrappers.append(self._count)

    def _count(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        server = context["connection"].server_alias
        self.counts["main" if server in ("default", "catalog") else server] += 1
        return execute(sql, params, many, context)


def fill_all() -> None:
    for slug, shard in SLUGS.items():
        Workspace.objects.create(
            slug=slug, name=slug, shard=shard if shard in settings.DATABASE_SHARDS else ""
        )
        with on_shard("", is_open=True):
            fill(slug)
            _fill_table(slug)


QUESTION = "What is the sum of the net prices?"


def _fill_table(slug: str) -> None:
    """A table, a column of which an editor corrects."""
    alice = Visitor("alice", slug)
    alice.upload("notes", "prices.csv", b"Bike,Price\nTrail,4500\nCity,799\n")
    (table,) = alice.get("tables/", q="prices")["results"]
    correction = {"column": "Price", "name": "Net price", "unit": "EUR"}
    alice.send("patch", f"tables/{table['id']}/", correction)


def _table(slug: str) -> Any:
    """The corrected table with its rows, and what is computed from it."""
    alice = Visitor("alice", slug)
    (table,) = alice.get("tables/", q="prices")["results"]
    rows = alice.get(f"tables/{table['id']}/rows/")
    computed = alice.send("post", "tables/ask/", {"question": QUESTION})
    assert computed["is_computed"], computed
    return table["columns"], [row["values"] for row in rows["results"]], computed["text"]


def answer_all() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for slug in SLUGS:
        statements = Statements()
        found[slug] = {
            "answers": [answers(slug, questions=ASKED), _table(slug)],
            "statements": dict(statements.counts),
        }
    return found


def begin() -> dict[str, Any]:
    fill_all()
    return answer_all()


def load(name: str, folder: Path) -> dict[str, Any]:
    """Search and write in each workspace until there is a file `stop` in `folder`: statuses by
    workspace, and how many facts were stored. Once all were answered there is a file `started`."""
    stop = folder / "stop"
    statuses: dict[str, Counter[str]] = {slug: Counter() for slug in SLUGS}
    stored: dict[str, int] = dict.fromkeys(SLUGS, 0)

    def client(slug: str) -> Client:
        made = Client(headers={"X-Workspace": slug}, raise_request_exception=False)
        made.force_login(User.objects.get(username="alice"))
        return made

    def search(slug: str) -> None:
        asking = client(slug)
        while not stop.exists():
            answer = asking.get("/api/v1/search/", {"q": "scopes", "mode": "lexical"})
            is_empty = answer.status_code == 200 and not answer.json()["hits"]
            statuses[slug]["empty" if is_empty else f"read {answer.status_code}"] += 1
            sleep(PAUSES[slug])
        connections.close_all()

    def write(slug: str) -> None:
        asking, number = client(slug), 0
        while not stop.exists():
            number += 1
            answer = asking.put(
                f"/api/v1/memory/facts/{name}_{number}/",
                {"value": str(number)},
                content_type="application/json",
            )
            statuses[slug][f"write {answer.status_code}"] += 1
            stored[slug] += answer.status_code in (200, 201)
            sleep(PAUSES[slug])
        connections.close_all()

    threads = [Thread(target=work, args=[slug]) for slug in SLUGS for work in (search, write)]
    for thread in threads:
        thread.start()
    while not all(each["read 200"] and each["write 200"] for each in statuses.values()):
        sleep(0.05)
    (folder / "started").touch()
    for thread in threads:
        thread.join()
    return {"statuses": statuses, "stored": stored}


def times(count: int) -> dict[str, float]:
    """Median milliseconds of a hybrid search in each workspace, asked in turns."""
    asking = {slug: Client(headers={"X-Workspace": slug}) for slug in SLUGS}
    taken: dict[str, list[float]] = {slug: [] for slug in SLUGS}
    for client in asking.values():
        client.force_login(User.objects.get(username="alice"))
    for number in range(count):
        for slug, client in asking.items():
            began = perf_counter()
            question = f"how is an API key number {number} revoked"
            assert client.get("/api/v1/search/", {"q": question}).status_code == 200
            taken[slug].append(1000 * (perf_counter() - began))
    return {slug: median(each) for slug, each in taken.items()}


def facts(name: str) -> dict[str, int]:
    """How many facts of the load `name` each workspace has, on its own shard."""
    from memory.models import Fact

    found = {}
    for slug in SLUGS:
        with on_shard(str(Workspace.objects.values_list("shard", flat=True).get(slug=slug))):
            rows = Fact.objects.filter(workspace__slug=slug, key__startswith=f"{name}_")
            found[slug] = rows.count()
            assert rows.values("key").distinct().count() == found[slug]
    return found


def leave(username: str, slug: str) -> int:
    """A member leaves and comes back; the status of the request in between."""
    asking = Client(headers={"X-Workspace": slug}, raise_request_exception=False)
    asking.force_login(User.objects.get(username=username))
    own = Membership.objects.get(user__username=username, workspace__slug=slug)
    own.delete()
    status = asking.get("/api/v1/search/", {"q": "scopes"}).status_code
    Membership.objects.create(user=own.user, workspace=own.workspace, role=own.role)
    return int(status)


def serve() -> NoReturn:
    """Run what each line asks for, its `words` as after `python`, in a process of its own that need
    not import anything any more. Answers are exit codes, or, where `ended` names a file that is to
    tell it at the end, process ids; `out` and `err` are files, too."""
    import ragsite.urls  # noqa: F401 (with all that it imports)

    for line in sys.stdin:
        request = json.loads(line)
        if (pid := os.fork()) == 0:
            for name, number in (("out", 1), ("err", 2)):
                os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            code = _run(*request["words"])
            if "ended" in request:
                Path(request["ended"]).write_text(str(code))
            os._exit(code)
        is_awaited = "ended" not in request
        answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if is_awaited else pid
        print(answer, flush=True)  # noqa: T201
    sys.exit()


def _run(*words: str) -> int:
    try:
        if words[0] == "manage.py":
            sys.argv = [*words]
            runpy.run_path(words[0], run_name="__main__")
        else:
            main(*words)
        return 0
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def main(what: str, *words: str) -> None:
    from ragsite.celery import app

    if what == "serve":
        serve()
    settings.ALLOWED_HOSTS = ["*"]
    app.conf.task_always_eager = True  # what is queued is done before the request is answered
    actions: dict[str, Any] = {
        "begin": begin,
        "answers": answer_all,
        "load": lambda: load(words[0], Path(words[1])),
        "times": lambda: times(int(words[0])),
        "facts": lambda: facts(*words),
        "leave": lambda: leave(*words),
    }
    json.dump(actions[what](), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
