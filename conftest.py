"""Fixtures of all apps' tests. A module that needs another `alice` or `collection` defines it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.models import Collection
from documents.tests.factories import CollectionFactory, MembershipFactory
from inference.model_registry import connect
from model_servers import registry
from tests.kit import client_of, logged_in


@pytest.fixture
def alice() -> Membership:
    """The owner of a workspace."""
    return MembershipFactory()


@pytest.fixture
def collection() -> Collection:
    """Empty, in a workspace without members."""
    return CollectionFactory()


@pytest.fixture
def api(alice: Membership) -> APIClient:
    """Alice's client of the API."""
    return client_of(alice)


@pytest.fixture
def bob(alice: Membership) -> Client:
    """The client of a viewer of Alice's workspace."""
    return logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


@pytest.fixture
def charlie() -> Client:
    """The client of the owner of another workspace."""
    return logged_in(MembershipFactory())


@pytest.fixture(autouse=True)
def without_connected_models(settings: Any) -> Iterator[None]:
    """Only the settings have models: what people connect is read from the database now and then,
    and tests count queries. `connected` brings them back. None is looked for on this machine."""
    settings.FIND_MODEL_SERVERS = []
    former = connect(lambda kind: ())
    yield
    connect(former)


@pytest.fixture
def connected(
    without_connected_models: None, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Connected models are found at once, as other processes find them within seconds; the
    environment names none."""
    settings.MODELS_SET = set()
    monkeypatch.setattr(registry, "MAX_AGE_SECONDS", -1.0)
    connect(registry.connected_models)


@pytest.fixture
def operator(alice: Membership) -> Membership:
    """Alice, who runs the site as well."""
    alice.user.is_superuser = alice.user.is_staff = True
    alice.user.save()
    return alice


@pytest.fixture
def model_down(settings: Any) -> None:
    """The default embedder answers no question."""
    down = {"default": {"BACKEND": "tests.kit.Down"}}
    settings.INFERENCE = {**settings.INFERENCE, "embedder": down, "reranker": {}}
