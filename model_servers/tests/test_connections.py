"""Which model answers: the site's default, what a workspace chose, and what is removed."""

from typing import Any

import pytest
from django.db import OperationalError
from django.db import connection as database

from accounts.models import Change, Membership
from common.errors import Conflict, Forbidden, InvalidInput
from common.rls import workspace_context
from documents.tests.factories import MembershipFactory
from inference.chat_models import UnknownModel, chat_model, chat_models
from inference.interfaces import BackendUnavailable, ChatMessage
from inference.model_registry import has_chat
from inference.tests.stub_server import StubServer
from model_servers import registry, services
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions
from model_servers.tests.servers import KEY, MODEL

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("connected")]

OPENAI = "inference.backends.chat_openai.OpenAIChat"
ASKED = [ChatMessage("user", "What is a library?")]


def options(**given: Any) -> ConnectionOptions:
    return ConnectionOptions.from_text(
        {"kind": "openai", "address": "http://localhost:1/v1", "model": MODEL, **given}
    )


def test_the_default_of_the_site_answers_until_it_is_removed() -> None:
    assert chat_model() is None
    connection = services.connect_model(options=options(), is_default=True)
    assert chat_model().model_name == MODEL
    assert has_chat()
    assert [(each.name, each.is_default) for each in chat_models()] == [
        (MODEL, True),
        ("extractive", False),
    ]
    services.remove_connection(connection=connection)
    assert chat_model() is None
    assert not has_chat()
    with pytest.raises(UnknownModel, match="There are: extractive"):
        chat_model(MODEL)


def test_there_is_one_default_and_making_another_replaces_it() -> None:
    first = services.connect_model(options=options(), is_default=True)
    second = services.connect_model(options=options(model="large"))
    services.set_default(connection=second)
    first.refresh_from_db()
    assert not first.is_default
    assert chat_model().model_name == "large"
    services.set_default(connection=second, is_default=False)
    assert chat_model() is None


def test_what_the_environment_sets_goes_before_the_default_of_the_page(settings: Any) -> None:
    services.connect_model(options=options(), is_default=True)
    own = {"model": "own", "base_url": "http://a", "api_key": ""}
    settings.INFERENCE = {"chat": {"default": {"BACKEND": OPENAI, "OPTIONS": own}}}
    assert chat_model().model_name == "own"
    assert chat_model(MODEL).model_name == MODEL
    assert [each.name for each in chat_models() if each.is_default] == ["own"]


def test_a_workspace_chooses_among_what_it_may_use(alice: Membership) -> None:
    elsewhere = MembershipFactory().workspace
    services.connect_model(options=options(), is_default=True)
    large = services.connect_model(options=options(model="large"), workspaces=[alice.workspace_id])
    with pytest.raises(InvalidInput, match="may not be used"):
        services.choose_model(workspace=elsewhere, connection=large)
    services.choose_model(workspace=alice.workspace, connection=large)
    assert chat_model(workspace_id=alice.workspace_id).model_name == "large"
    assert chat_model(workspace_id=elsewhere.pk).model_name == MODEL
    with pytest.raises(UnknownModel):
        chat_model("large", workspace_id=elsewhere.pk)
    services.choose_model(workspace=alice.workspace, connection=None)
    assert chat_model(workspace_id=alice.workspace_id).model_name == MODEL


def test_the_default_is_open_to_all_workspaces(alice: Membership) -> None:
    with pytest.raises(InvalidInput, match="open to all"):
        services.connect_model(options=options(), workspaces=[alice.workspace_id], is_default=True)


def test_names_are_taken_once() -> None:
    services.connect_model(options=options())
    with pytest.raises(Conflict, match="Choose another name"):
        services.connect_model(options=options())


def test_a_changed_connection_is_used_without_a_restart(server: StubServer) -> None:
    connection = services.connect_model(options=options(), is_default=True)
    before = chat_model()
    assert chat_model() is before
    services.change_connection(connection=connection, options=options(address=server.url, key=KEY))
    (*pieces,) = chat_model().stream(ASKED)
    assert "".join(pieces) == "A library lends books."
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_is_stored_encrypted_and_not_sent_to_another_server() -> None:
    connection = services.connect_model(options=options(key=KEY))
    with database.cursor() as cursor:
        cursor.execute("SELECT row::text FROM model_servers_modelconnection AS row")
        (text,) = cursor.fetchone()
    assert KEY not in text
    assert KEY.encode().hex() not in text
    services.change_connection(connection=connection, options=options(model="large"))
    assert connection.has_key
    with pytest.raises(InvalidInput, match="Enter the key again") as caught:
        services.change_connection(
            connection=connection, options=options(address="http://elsewhere.example/v1")
        )
    assert caught.value.field == "key"


def test_a_key_that_cannot_be_decrypted_is_named_when_the_model_is_asked(settings: Any) -> None:
    services.connect_model(options=options(key=KEY), is_default=True)
    settings.CREDENTIALS_KEYS = ["another"]
    with pytest.raises(BackendUnavailable, match="RAGSITE_CREDENTIALS_KEYS"):
        chat_model().complete(ASKED)


def test_keys_are_encrypted_anew_by_the_newest_key(settings: Any) -> None:
    settings.CREDENTIALS_KEYS = ["old"]
    services.connect_model(options=options(key=KEY))
    settings.CREDENTIALS_KEYS = ["new", "old"]
    assert services.encrypt_anew() == 1
    settings.CREDENTIALS_KEYS = ["new"]
    (row,) = ModelConnection.objects.all()
    assert services.decrypted_key(row) == KEY


def test_only_who_runs_the_site_manages_its_models(
    alice: Membership, settings: Any, operator: Membership
) -> None:
    owner = MembershipFactory(workspace=alice.workspace, role="owner")
    services.connect_model(options=options())
    managed = services.managed_connections(user=operator.user, workspace=alice.workspace)
    assert [row.name for row in managed] == [MODEL]
    for allowed in (False, True):
        settings.WORKSPACE_MODELS = allowed
        assert services.managed_connections(user=owner.user, workspace=alice.workspace) == []
        with pytest.raises(Forbidden):
            services.require_manager(user=owner.user, workspace=None)
    services.require_manager(user=owner.user, workspace=alice.workspace)
    settings.WORKSPACE_MODELS = False
    with pytest.raises(Forbidden):
        services.require_manager(user=owner.user, workspace=alice.workspace)


def test_a_model_of_a_workspace_is_its_own_and_of_the_public_internet(alice: Membership) -> None:
    with pytest.raises(InvalidInput, match="https"):
        services.connect_model(options=options(key=KEY), workspace=alice.workspace)
    inside = options(address="https://localhost:1/v1", key=KEY)
    services.connect_model(options=inside, workspace=alice.workspace)
    with pytest.raises(UnknownModel):
        chat_model(MODEL, workspace_id=MembershipFactory().workspace_id)
    with pytest.raises(BackendUnavailable, match="own network"):
        chat_model(MODEL, workspace_id=alice.workspace_id).complete(ASKED)


def test_connections_are_found_within_the_fence_of_a_request(alice: Membership) -> None:
    services.connect_model(options=options(), is_default=True)
    with workspace_context(alice.workspace_id):
        assert chat_model(workspace_id=alice.workspace_id).model_name == MODEL
        assert not ModelConnection.objects.exists()


def test_what_other_processes_change_is_known_two_seconds_later_and_nothing_is_read_before(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = [100.0]
    monkeypatch.setattr(registry, "monotonic", lambda: now[0])
    monkeypatch.setattr(registry, "MAX_AGE_SECONDS", 2.0)
    registry.forget()
    assert chat_model() is None
    services.connect_model(options=options(), is_default=True)  # committed by nobody here
    now[0] += 1.9
    with django_assert_num_queries(0):
        assert chat_model() is None
    now[0] += 0.2
    assert chat_model().model_name == MODEL


def test_a_database_that_is_away_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    services.connect_model(options=options(), is_default=True)
    assert chat_model().model_name == MODEL

    def fail(*args: Any, **given: Any) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(registry.transaction, "atomic", fail)
    assert chat_model().model_name == MODEL


def test_history_names_the_connection_and_no_key() -> None:
    services.connect_model(options=options(key=KEY))
    (change,) = Change.objects.all()
    assert (change.kind, change.action) == ("model", "made")
    assert KEY not in str(change.details)


def test_prompts_fit_into_the_context_that_the_server_reported(server: StubServer) -> None:
    given = options(address=f"{server.url}/v1")
    assert services.with_reported_context(given).context_tokens == 4096
    tried, _ = services.tried_options(given)
    connection = services.connect_model(options=tried, is_default=True)
    assert connection.context_tokens == chat_model().context_tokens == 4096
    services.change_connection(connection=connection, options=options(address=given.address))
    assert connection.context_tokens == 4096
    services.change_connection(connection=connection, options=options(model="large"))
    assert connection.context_tokens is None
    services.change_connection(connection=connection, options=given)
    services.try_connection(connection)
    assert ModelConnection.objects.get().context_tokens == 4096
