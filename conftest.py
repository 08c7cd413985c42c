"""Fixtures of all apps' tests. A module that needs another `alice` or `collection` defines it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.transaction import atomic, set_rollback
from django.test import Client, override_settings
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


@contextmanager
def only_models_of_settings() -> Iterator[None]:
    """What people connect is read from the database now and then, and tests count queries. None is
    looked for on this machine."""
    with override_settings(FIND_MODEL_SERVERS=[]):
        former = connect(lambda kind: ())
        yield
        connect(former)


@pytest.fixture(autouse=True)
def without_connected_models() -> Iterator[None]:
    """Only the settings have models. `connected` brings the others back."""
    with only_models_of_settings():
        yield


@pytest.fixture(scope="module")
def shared_rows(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """What fixtures of a module write is there for its tests that are marked `django_db`, each of
    which takes back what it changes; all is rolled back at the end. The others of the module see
    it too, and none may need a committed row."""
    transaction = atomic()
    transaction._from_testcase = True  # or nothing inside could ask for a durable one
    media = override_settings(MEDIA_ROOT=tmp_path_factory.mktemp("media"))
    with django_db_blocker.unblock(), transaction, media, only_models_of_settings():
        yield
        set_rollback(True)


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
