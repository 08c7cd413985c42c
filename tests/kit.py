"""What tests of several apps share: clients that are logged in, the admin, threads, workers."""

import html
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, cast

from django.contrib.admin.models import LogEntry
from django.core.files.base import ContentFile
from django.db import connection, models
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from documents.ingestion import pipeline
from documents.models import Collection, Document, IngestionRun
from documents.services import Upload, ingest_uploads
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable


def client_of(who: Any, **options: Any) -> APIClient:
    """A client of the API, logged in as a user or as the user of a membership or context."""
    client = APIClient(**options)
    client.force_login(getattr(who, "user", who))
    return client


def logged_in(who: Any) -> Client:
    """A client of the pages, logged in as a user or as the user of a membership or context."""
    client = Client()
    client.force_login(getattr(who, "user", who))
    return client


def page_of(what: type[models.Model] | models.Model, page: str = "changelist") -> str:
    """The address of a page of the admin, of a model or of a row."""
    args = [what.pk] if isinstance(what, models.Model) else []
    return reverse(f"admin:{what._meta.app_label}_{what._meta.model_name}_{page}", args=args)


def act(client: Client, action: str, *rows: models.Model, **more: str) -> str:
    """Do an action of a list of the admin; what the page says then."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    answer = client.post(page_of(type(rows[0])), chosen, follow=True)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def log_texts() -> str:
    """All that the log of the admin says."""
    return "".join(map(str, LogEntry.objects.values_list("object_repr", "change_message")))


def hashing(dimensions: int = 384, **more: Any) -> dict[str, Any]:
    """The setting of an embedder that hashes words into so many dimensions."""
    options = {"dimensions": dimensions}
    return {"BACKEND": "inference.backends.hashing.HashingEmbedder", "OPTIONS": options, **more}


def use_models(settings: Any, **kinds: Mapping[str, Any]) -> None:
    """Set the models of these kinds by alias, or by its own setting one that is the default."""
    models = {
        kind: {"default": given} if "BACKEND" in given else given for kind, given in kinds.items()
    }
    settings.INFERENCE = {**settings.INFERENCE, **models}


class Down(HashingEmbedder):
    """A model host that does not answer questions."""

    def embed_query(self, text: str, instruction: str | None = None) -> Any:
        """Raise BackendUnavailable."""
        raise BackendUnavailable("the model host does not answer; start it.")


def process_documents() -> None:
    """Parse and embed what is not ready, as the workers do."""
    ids = list(Document.objects.exclude(status="ready").values_list("pk", flat=True))
    pipeline.embed_documents(pipeline.parse_documents(ids))


def queue_file(collection: Collection, name: str, content: bytes, **options: Any) -> Document:
    """Upload it, without any worker; the row that its text goes into."""
    upload = Upload(name=name, file=ContentFile(content, name=name))
    run = ingest_uploads(collection=collection, uploads=[upload], **options)
    return cast("Document", run.items.get().document)


def work_on(*documents: Document) -> None:
    """What the two queues do with them."""
    pipeline.embed_documents(pipeline.parse_documents([each.pk for each in documents]))
    for document in documents:
        document.refresh_from_db()


def half_done_run(collection: Collection) -> IngestionRun:
    """One file is ready, one has failed, one waits."""
    names = {"ready.txt": b"Some words.", "empty.txt": b"", "waiting.txt": b"More words."}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in names.items()]
    run = ingest_uploads(collection=collection, uploads=uploads)
    work_on(*Document.objects.filter(collection=collection).exclude(key="waiting.txt"))
    return run


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Run each in a thread with its own connection, as nearly at one moment as can be."""
    start = Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        try:
            start.wait(timeout=10)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))
