"""What people do in a schedule. Whoever is refused because something is down tries again."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

from django.core.files.base import ContentFile
from django.db import DatabaseError, connections

from accounts.models import Workspace
from common.errors import Conflict
from documents import tasks
from documents.models import Collection, Document, IngestionRun
from documents.services import Upload, cancel_run, delete_document, ingest_uploads
from graph.inputs import EdgeInput, NodeInput
from graph.scopes import graph_scope
from graph.services import upsert_many
from memory.scopes import user_scope
from memory.services import archive_turn, set_fact
from rag.context import RagContext
from rag.services.chat import chat
from rag.services.questions import Question
from search.query_options import site_scope
from search.services import search
from tests.schedules.expected import Expected, name, text
from tests.schedules.plan import KEYS, Step

T = TypeVar("T")
PATIENCE_SECONDS = 60.0


class People:
    """They act on one collection, and note in `expected` what must come of it."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.expected = Expected()
        self.refused = 0
        self._runs: list[int] = []

    @property
    def workspace(self) -> Workspace:
        return self.collection.workspace

    def act(self, step: Step) -> None:
        """Do what the step names."""
        getattr(self, step.name)(step)

    def upload(self, step: Step) -> None:
        run = self._surely(lambda: self._upload([(step.key, step.variant)], step.policy))
        self._note_run(run)
        self.expected.uploaded(step.key, step.variant, run=run)

    def upload_several(self, step: Step) -> None:
        files = [(key, (key + step.variant) % 3) for key in range(KEYS)]
        run = self._surely(lambda: self._upload(files, step.policy))
        self._note_run(run)
        for key, variant in files:
            self.expected.uploaded(key, variant, run=run)

    def upload_twice_at_once(self, step: Step) -> None:
        variants = step.variant, (step.variant + 1) % 3

        def bring(variant: int) -> None:
            try:
                self._surely(lambda: self._upload([(step.key, variant)], step.policy))
            finally:
                connections.close_all()

        threads = [Thread(target=bring, args=[variant]) for variant in variants]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.expected.uploaded(step.key, *variants)

    def delete(self, step: Step) -> None:
        def remove() -> None:
            row = self._documents().filter(key=name(step.key)).current().first()
            if row is not None:
                delete_document(document=row)

        self._surely(remove)
        self.expected.deleted(step.key)

    def cancel(self, step: Step) -> None:
        if not self._runs:
            return
        run = self._runs[-1 - step.key % len(self._runs)]
        # Tried again, it may have been cancelled the first time.
        self.expected.cancelled(run)

        def stop() -> None:
            with suppress(Conflict):  # it has ended
                cancel_run(run=IngestionRun.objects.get(pk=run))

        self._surely(stop)

    def deliver_again(self, step: Step) -> None:
        """Every message twice, as a broker may."""

        def deliver() -> None:
            ids = list(self._documents().values_list("pk", flat=True))
            tasks.enqueue(ids)
            tasks.enqueue(ids)

        self._surely(deliver)

    def search(self, step: Step) -> None:
        word = f"mark{step.key}x{step.variant}x0"
        result = self._surely(
            lambda: search(word, scope=site_scope(workspace=self.workspace), k=50, mode="lexical")
        )
        told = [hit for hit in result.hits if word in hit.text and hit.is_current]
        if len({hit.chunk_id for hit in told}) > 1:
            raise AssertionError(f"{word} is told in {len(told)} current passages: {told}")

    def chat(self, step: Step) -> None:
        def ask() -> Any:
            question = Question(message=f"What does note{step.key} tell of?")
            context = RagContext(user=None, workspace=self.workspace)
            return list(chat(question, context=context, keep=False))

        self._surely(ask)

    def remember(self, step: Step) -> None:
        said = f"I have seen note{step.key} in variant{step.variant}."
        scope = user_scope(workspace=self.workspace)
        self._surely(lambda: archive_turn(scope=scope, user_message=said))
        self.expected.remembered.add(said)

    def learn(self, step: Step) -> None:
        key, value = f"favourite_{step.key}", f"variant{step.variant}"
        scope = user_scope(workspace=self.workspace)
        self._surely(lambda: set_fact(scope=scope, key=key, value=value))
        self.expected.facts[key] = value

    def connect(self, step: Step) -> None:
        ends = f"ent:key:{step.key}", f"ent:variant:{step.variant}"
        nodes = [NodeInput(end, name=f"The {end}") for end in ends]
        edges = [EdgeInput(ends[0], "HAS", ends[1])]
        scope = graph_scope(user=None, workspace=self.workspace)
        self._surely(lambda: upsert_many(scope=scope, nodes=nodes, edges=edges))
        self.expected.nodes |= {node.id: node.name or "" for node in nodes}
        self.expected.edges.add(ends)

    # --- below -----------------------------------------------------------------------------------

    def _upload(self, files: list[tuple[int, int]], policy: str) -> int:
        uploads = [
            Upload(name=name(key), file=ContentFile(text(key, variant).encode()))
            for key, variant in files
        ]
        run = ingest_uploads(collection=self.collection, uploads=uploads, policy=policy)
        return int(run.pk)

    def _note_run(self, run: int) -> None:
        self._runs.append(run)

    def _documents(self) -> Any:
        return Document.objects.filter(collection=self.collection)

    def _surely(self, work: Callable[[], T]) -> T:
        """As a person does: what the site could not do just now is asked for again. Any other
        error is a fault of the site."""
        deadline = monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return work()
            except DatabaseError:
                if monotonic() > deadline:
                    raise
                self.refused += 1
                connections.close_all()
                Event().wait(0.05)
