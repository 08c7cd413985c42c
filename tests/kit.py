"""What tests of several apps share: clients that are logged in, threads, workers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from documents.ingestion import pipeline
from documents.models import Document
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable


def client_of(who: Any) -> APIClient:
    """A client of the API, logged in as a user or as the user of a membership or context."""
    client = APIClient()
    client.force_login(getattr(who, "user", who))
    return client


def logged_in(who: Any) -> Client:
    """A client of the pages, logged in as a user or as the user of a membership or context."""
    client = Client()
    client.force_login(getattr(who, "user", who))
    return client


class Down(HashingEmbedder):
    """A model host that does not answer questions."""

    def embed_query(self, text: str, instruction: str | None = None) -> Any:
        """Raise BackendUnavailable."""
        raise BackendUnavailable("the model host does not answer; start it.")


def process_documents() -> None:
    """Parse and embed what is not ready, as the workers do."""
    ids = list(Document.objects.exclude(status="ready").values_list("pk", flat=True))
    pipeline.embed_documents(pipeline.parse_documents(ids))


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run each in a thread with its own connection, as nearly at one moment as can be."""
    start = Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        try:
            start.wait(timeout=10)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))
