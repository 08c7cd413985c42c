"""Make a small kept backup of a release, from which tests/test_upgrades.py upgrades to the code at
hand.

    .venv/bin/python -m scripts.keep_release tests/releases/1.0

To keep an earlier release, run this file in its checkout, with its packages:

    cd CHECKOUT && .venv/bin/python …/scripts/keep_release.py …/tests/releases/0.1

It fills an empty database with a bit of everything over the API, which is the same in all releases,
backs it up, and writes down what the site answers (`answers.json`). The embedder is the hashing one
of the tests: the same vectors on every machine, without a model.

    .venv/bin/python -m scripts.keep_release --answers

prints what the site of DATABASE_URL answers now.
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Documentation of the release itself; the first is changed and kept in two versions.
PAGES = ("check-and-repair", "make-api-keys", "learn-facts", "rerank")
GERMAN = "Der Leuchtturm steht am Hafen. Seine Lampe wird jeden Abend bei Einbruch der Dunkelheit\
 angezündet, und der Wärter schreibt das Wetter in sein Buch."
SECRET = "Bob's salary review is on Friday in the small meeting room behind the kitchen."
QUESTIONS = (
    "exit code when problems were found",
    "how is an API key revoked",
    "scopes",
    "facts about a user",
    "reranker",
    "model of your own",
    "duplicate documents",
    "Leuchtturm Lampe",
    "salary review",
)
MODES = ("lexical", "vector", "hybrid")
MOST_HITS = 5


class Visitor:
    """The API as one user uses it, without a server in between; in the workspace `slug`, or in the
    user's first."""

    def __init__(self, username: str, slug: str = "") -> None:
        from django.contrib.auth import get_user_model
        from django.test import Client

        self.user = get_user_model().objects.get(username=username)
        self._client = Client(headers={"X-Workspace": slug} if slug else None)
        self._client.force_login(self.user)
        if slug:
            self._client.post("/workspaces/choose/", {"workspace": slug})

    def get(self, path: str, **parameters: Any) -> Any:
        return self._read(self._client.get(f"/api/v1/{path}", parameters))

    def send(self, method: str, path: str, data: dict[str, Any]) -> Any:
        sending = getattr(self._client, method)
        return self._read(sending(f"/api/v1/{path}", data, content_type="application/json"))

    def upload(self, collection: str, name: str, content: bytes) -> None:
        from django.core.files.uploadedfile import SimpleUploadedFile

        files = SimpleUploadedFile(name, content)
        self._read(
            self._client.post("/api/v1/documents/", {"collection": collection, "files": files})
        )

    def judge(self, question: str, document: int, chunk: int, grade: int) -> None:
        given = {"parameters": f"q={question}", "hit": f"{document}.{chunk}.{grade}"}
        answer = self._client.post("/judge/", given)
        assert answer.status_code == 302, answer.content[:500]

    @staticmethod
    def _read(answer: Any) -> Any:
        if answer.status_code >= 300:
            raise SystemExit(f"{answer.request['PATH_INFO']}: {answer.content.decode()[:2000]}")
        content = b"".join(answer) if answer.streaming else answer.content
        return json.loads(content or "null")


def fill(slug: str = "default") -> None:
    """A bit of everything, in an empty workspace."""
    from accounts.models import Membership
    from accounts.services import ensure_login, get_or_create_workspace
    from documents.services import get_or_create_collection

    workspace = get_or_create_workspace(slug=slug)
    for name in ("alice", "bob"):
        ensure_login(username=name, workspace=workspace)
    named = "" if slug == "default" else slug
    alice, bob = Visitor("alice", named), Visitor("bob", named)
    Membership.objects.filter(user=bob.user).update(role="viewer")

    get_or_create_collection(workspace=workspace, slug="handbook")
    for name in PAGES:
        text = Path("docs/how-to", f"{name}.md").read_text()
        _ingest(alice, key=name, text=text, media_type="text/markdown")
        if name == PAGES[0]:
            changed = text.replace("clean", "spotless")
            _ingest(alice, key=name, text=changed, media_type="text/markdown", policy="new_version")
    alice.send("patch", "collections/handbook/", {"description": "How to."})
    alice.send("post", "collections/", {"name": "Notes", "slug": "notes", "language": "de"})
    alice.upload("notes", "harbour.txt", GERMAN.encode())
    _ingest(alice, key="secret", text=SECRET)
    secret = next(d for d in _documents(alice) if d["key"] == "secret")
    alice.send("patch", f"documents/{secret['id']}/", {"access": [f"user:{alice.user.pk}"]})
    item = {"id": "note-1", "text": "The canteen opens in March.", "metadata": {"year": 2026}}
    alice.send("post", "collections/handbook/store/items/", {"items": [item]})

    hits = alice.get("search/", q=QUESTIONS[3], mode="lexical")["hits"]
    changed = "Facts are what is known of one user: a name, a town, a habit."
    alice.send("patch", f"chunks/{hits[0]['chunk_id']}/", {"text": changed})
    by_document = {hit["document"]["id"]: hit["chunk_id"] for hit in hits[1:]}
    for document, grade in zip(by_document, (2, 0), strict=False):
        alice.judge(QUESTIONS[3], document, by_document[document], grade)
    alice.send("post", "evaluations/", {"collection": "handbook"})
    alice.send("post", "saved-searches/", {"name": "keys", "parameters": "q=scopes&mode=lexical"})
    alice.send("post", "keys/", {"name": "nightly report", "scopes": ["read"]})

    turns = {"My sister Clara plays the cello.": "How lovely!", "I live in Porto.": "By the sea."}
    for said, answered in turns.items():
        turn = {"user_message": said, "assistant_response": answered}
        alice.send("post", "memory/contexts/", turn)
    for town in ("Porto", "Lisbon"):
        alice.send("put", "memory/facts/home_town/", {"value": town})
    nodes = [
        {"id": "ent:person:clara", "name": "Clara", "labels": ["Person"]},
        {"id": "src:crm:1", "name": "Harbour Orchestra", "labels": ["Company"]},
    ]
    edge = {"source": nodes[0]["id"], "rel": "WORKS_WITH", "target": nodes[1]["id"]}
    alice.send("post", "graph/bulk/", {"nodes": nodes, "edges": [edge], "strict": True})
    alice.send(
        "post", "chat/", {"message": QUESTIONS[1], "collections": ["handbook"], "stream": False}
    )


def _ingest(visitor: Visitor, **document: str) -> None:
    visitor.send("post", "documents/", {"collection": "handbook", **document})


def answers(slug: str = "", *, questions: Sequence[str] = QUESTIONS) -> dict[str, Any]:
    """What the site answers its two users, over the API; without ids and times."""
    alice, bob = Visitor("alice", slug), Visitor("bob", slug)
    documents = _documents(alice)

    def hits(visitor: Visitor, question: str, mode: str) -> list[tuple[str, str]]:
        found = visitor.get("search/", q=question, mode=mode, k=MOST_HITS)["hits"]
        return [
            (hit["document"]["key"], hashlib.sha256(hit["text"].encode()).hexdigest()[:12])
            for hit in found
        ]

    texts = {each["key"]: _text(alice, each["id"]) for each in documents}
    edits = [alice.get(f"documents/{each['id']}/edits/")["results"] for each in documents]
    conversations = [each["id"] for each in alice.get("conversations/")["results"]]
    messages = [alice.get(f"conversations/{pk}/messages/")["results"] for pk in conversations]
    found = alice.get("memory/search/", query="Who plays the cello?", mode="lexical")["hits"]
    return {
        "documents": {
            each["key"]: {
                "collection": each["collection"],
                "title": each["title"],
                "version": each["version"],
                "status": each["status"],
                "chunks": each["chunk_count"],
                "sha256": hashlib.sha256(texts[each["key"]].encode()).hexdigest(),
            }
            for each in documents
        },
        "seen_by_bob": sorted(each["key"] for each in _documents(bob)),
        "hits": {
            visitor.user.username: {
                mode: {question: hits(visitor, question, mode) for question in questions}
                for mode in MODES
            }
            for visitor in (alice, bob)
        },
        "edits": [(each["state"], each["after"]) for part in edits for each in part],
        "judged": [each["judgements"] for each in alice.get("evaluations/")["results"]],
        "saved_searches": [each["name"] for each in alice.get("saved-searches/")["results"]],
        "keys": [each["name"] for each in alice.get("keys/")["results"]],
        "contexts": [each["user_message"] for each in alice.get("memory/contexts/")["results"]],
        "memory_hits": [each["context"]["user_message"] for each in found],
        "home_towns": [
            (each["value"], each["is_current"])
            for each in alice.get("memory/facts/home_town/history/")["results"]
        ],
        "neighbors": [
            (each["rel"], each["direction"], each["node"]["name"])
            for each in alice.get("graph/neighbors/", id="ent:person:clara")["results"]
        ],
        "messages": [(each["role"], each["state"]) for part in messages for each in part],
    }


def _documents(visitor: Visitor) -> list[dict[str, Any]]:
    return sorted(
        visitor.get("documents/", page_size=100)["results"], key=lambda each: str(each["key"])
    )


def _text(visitor: Visitor, document: int) -> str:
    chunks = visitor.get(f"documents/{document}/chunks/", page_size=100)["results"]
    return "\n".join(each["text"] for each in chunks)


def keep(target: Path) -> None:
    """Fill a site of its own, and write its backup and its answers into the folder `target`."""
    with tempfile.TemporaryDirectory(prefix="rs-", dir="/tmp") as top:
        Path(top).chmod(0o755)
        environment = {
            **{k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL")},
            "RAGSITE_ENV_FILE": "",
            "RAGSITE_VAR_DIR": f"{top}/var",
            "MEDIA_ROOT": f"{top}/media",
            "EMBEDDER_BACKEND": "inference.backends.hashing.HashingEmbedder",
        }

        def run(*words: str) -> str:
            return subprocess.run(
                [sys.executable, *words],
                env=environment,
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            ).stdout

        run("manage.py", "services", "start")
        try:
            run("manage.py", "migrate", "--verbosity=0")
            run(__file__, "--fill")
            said = run(__file__, "--answers")
            run("manage.py", "backup", f"{top}/backup")
        finally:
            run("manage.py", "services", "stop")
        target.mkdir(parents=True, exist_ok=True)
        # Packed once more: the list of tables and indexes in a dump is not.
        with tarfile.open(target / "backup.tar.xz", "w:xz") as archive:
            archive.add(f"{top}/backup", arcname="backup")
    (target / "answers.json").write_text(said)


def main(argument: str) -> None:
    if not argument.startswith("--"):
        keep(Path(argument).absolute())
        return
    sys.path.insert(0, str(Path.cwd()))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django
    from django.conf import settings

    django.setup()
    settings.ALLOWED_HOSTS = ["*"]
    from ragsite.celery import app

    app.conf.task_always_eager = True  # what is queued is done before the request is answered
    if argument == "--fill":
        fill()
    else:
        json.dump(answers(), sys.stdout, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
