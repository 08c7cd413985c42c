"""What tests of several apps share: clients that are logged in, threads, workers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.ingestion import pipeline
from documents.models import Document
from documents.tests.factories import MembershipFactory


def client_of(member: Any) -> APIClient:
    """A client of the API, logged in as `member.user`."""
    client = APIClient()
    client.force_login(member.user)
    return client


def logged_in(member: Any) -> Client:
    """A client of the pages, logged in as `member.user`."""
    client = Client()
    client.force_login(member.user)
    return client


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


# Fixtures of the tests of pages: a conftest imports them.


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's."""
    return logged_in(alice)


@pytest.fixture
def bob(alice: Membership) -> Client:
    """A viewer's."""
    return logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


@pytest.fixture
def charlie() -> Client:
    """That of the owner of another workspace."""
    return logged_in(MembershipFactory())
