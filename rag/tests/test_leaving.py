"""Who leaves a group or the workspace while an answer is written reads no more of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.test import RequestFactory

from accounts.api_keys import revoke_key
from accounts.groups import add_members, create_group, set_members
from accounts.members import remove_member
from accounts.models import ApiKey, Membership
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory
from rag import answer_stream
from rag.answer_stream import stream_response
from rag.events import Done, Event, Token
from tests.plugin import empty_tables

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(answer_stream, "RIGHTS_SECONDS", 0.0)
    yield
    empty_tables()


def answer(member: Membership, leave: Callable[[], Any], key: ApiKey | None = None) -> str:
    """What a member reads of an answer that leaves off before its second word."""
    has_left = threading.Event()

    def events() -> Iterator[Event]:
        yield Token("first")
        assert has_left.wait(20)
        yield Token("second")
        yield Done(elapsed_ms=1.0)

    request: Any = RequestFactory().post("/")
    request.user, request.auth = member.user, key
    response: Any = stream_response(events(), request=request, cancelled=threading.Event())
    told = ""
    with suppress(StopIteration):
        while True:
            told += next(response.streaming_content).decode()
            if "first" in told and not has_left.is_set():
                leave()
                has_left.set()
    response.close()
    return told


def test_nothing_follows_once_a_right_is_lost() -> None:
    member = MembershipFactory(role="viewer")
    owner = MembershipFactory(workspace=member.workspace, role="owner")
    group = create_group(workspace=member.workspace, name="Board")
    add_members(group=group, memberships=[member])
    key, _ = make_key(member)

    assert "second" in answer(member, lambda: None, key)
    for leave in (
        lambda: revoke_key(key=key),
        lambda: set_members(group=group, user_ids=[owner.user_id]),
        lambda: remove_member(membership=member),
    ):
        told = answer(member, leave, key if key.revoked_at is None else None)
        assert "second" not in told
        assert "rights_lost" in told
        key.refresh_from_db() if key.pk and ApiKey.objects.filter(pk=key.pk).exists() else None


def test_a_new_right_ends_nothing() -> None:
    member = MembershipFactory(role="viewer")
    group = create_group(workspace=member.workspace, name="Board")
    told = answer(member, lambda: add_members(group=group, memberships=[member]))
    assert "second" in told
