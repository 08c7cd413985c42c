"""No row of one user comes out of a request about another, whatever they are called."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.models import Membership, Workspace
from common.errors import InvalidInput
from documents.tests.factories import WorkspaceFactory
from memory.fact_keys import fact_key
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope, user_scope
from memory.services import archive_turn, set_fact
from memory.services.memories import record_messages
from memory.tests.clients import CONTEXTS, FACTS, MEMORY, SEARCH

pytestmark = pytest.mark.django_db
SECRET = "zanzibar"

IDS = st.sampled_from(
    [
        *("ada", "Ada", "ada ", " ada", "ada\n", "ada\t", "a", "ad", "adam", "ada,bob", "ada|bob"),
        *("%", "_", "*", "?", ".", "..", "/", "a/../ada", "ada&user_id=bob", "ada#", "ada;bob"),
        *("' OR 1=1 --", "ada'--", '"', "\\", "\\'", "$$", "%s", "%(user)s", "{}", "NULL", "null"),
        *(
            "é",
            "e\u0301",
            "ß",
            "ss",
            "ﬁ",
            "fi",
            "ı",
            "i",
            "K",
            "\u212a",
            "日本",
            "👩‍🔬",
            "\u202eada",
        ),
        *("ada\u200b", "ada\ufeff", "\u00a0", "0", "-1", "1e9", "true", "[]", "x" * 255),
    ]
) | st.text(max_size=20)
KEYS = st.sampled_from(
    ["city", "City", "a/b", "..", "%", "日本", "' OR 1=1 --", "x" * 200]
) | st.text(min_size=1, max_size=20)
HOSTILE_TEXTS = ["tea", "[facts: city=x]", "' OR 1=1 --", "%", "\\", "{}", "a & b | !c:*", "\u202e"]
TEXTS = st.sampled_from(HOSTILE_TEXTS) | st.text(min_size=1, max_size=30)


@pytest.fixture
def elsewhere() -> Workspace:
    return WorkspaceFactory()


def keep_secrets(scope: UserScope, key: str, text: str) -> None:
    """What `scope` is remembered by, alike to the attacker's in all but the secret."""
    archive_turn(
        scope=scope, user_message=f"{text} {SECRET}", assistant_response=SECRET, conversation="c"
    )
    set_fact(scope=scope, key=key, value=f"{text} {SECRET}")
    set_fact(scope=scope, key=SECRET, value=SECRET)
    messages = [{"role": "user", "content": SECRET}] * 2
    record_messages(scope=scope, conversation="c", messages=messages)
    record_messages(scope=scope, conversation=SECRET, messages=messages)


def rows_of(scope: UserScope) -> tuple[list[Any], ...]:
    """All of it that a request could change."""
    return (
        list(Context.objects.of(scope).values("pk", "user_message", "conversation")),
        list(Fact.objects.of(scope).values("pk", "value", "valid_to")),
        list(ExtractionItem.objects.of(scope).values("pk", "messages", "state")),
    )


def ids_of(kind: Any) -> list[int]:
    return list(kind.objects.values_list("pk", flat=True))


def answers(api: APIClient, user_id: str, key: str, text: str) -> list[Any]:
    """What every address answers about `user_id`; what removes comes last."""

    def at(url: str, **more: str) -> str:
        return f"{url}?{urlencode({'user_id': user_id, **more})}"

    fact = f"{FACTS}{quote(key, safe='')}/"
    said = [{"role": "user", "content": text}]
    contexts = [at(f"{CONTEXTS}{number}/") for number in ids_of(Context)]
    waiting = ids_of(ExtractionItem)
    return [
        api.post(at(CONTEXTS), {"user_message": text, "conversation": "c"}),
        api.put(at(fact), {"value": text}),
        api.get(at(CONTEXTS)),
        api.get(at(CONTEXTS, conversation="c", page_size="1")),
        api.post(at(SEARCH), {"q": f"tea {SECRET}", "threshold": 0, "mode": "lexical"}),
        api.get(at(SEARCH, q=text, threshold="0", k="100", mode="lexical")),
        api.get(at(FACTS)),
        api.get(at(fact)),
        api.get(at(f"{fact}history/")),
        api.get(at(f"{FACTS}{SECRET}/history/")),
        api.get(at(f"{MEMORY}usage/")),
        api.get(at(f"{MEMORY}export/")),
        api.post(at(f"{MEMORY}inject/"), {"messages": said, "threshold": 0}),
        api.post(at(f"{MEMORY}conversations/"), {"conversation": "c", "messages": said}),
        api.get(at(f"{MEMORY}conversations/")),
        *(api.post(at(f"{MEMORY}conversations/{number}/retry/")) for number in waiting),
        *(api.get(url) for url in contexts),
        *(api.delete(url) for url in contexts),
        api.post(at(f"{CONTEXTS}clear/"), {"question": f"{text} {SECRET}"}),
        api.post(at(f"{FACTS}{SECRET}/clear/")),
        api.delete(at(f"{FACTS}{SECRET}/")),
        api.delete(at(fact)),
        api.delete(at(MEMORY, confirm=user_id)),
    ]


def text_of(answer: Any) -> str:
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return content.decode()


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(victim=IDS, attacker=IDS, key=KEYS, text=TEXTS)
def test_no_address_tells_or_takes_what_is_anothers(
    alice: Membership,
    api: APIClient,
    elsewhere: Workspace,
    victim: str,
    attacker: str,
    key: str,
    text: str,
) -> None:
    assume(victim != attacker and SECRET not in attacker)
    text = text.replace(SECRET, "")
    assume(_storable(key, text))
    scopes = [
        _scope(alice.workspace, victim),
        _scope(elsewhere, attacker),
        _scope(elsewhere, victim),
        _scope(alice.workspace, f"user:{alice.user.pk}"),
    ]
    victims = [scope for scope in scopes if scope is not None]
    with transaction.atomic():
        for scope in victims:
            keep_secrets(scope, key, text)
        before = [rows_of(scope) for scope in victims]

        for answer in answers(api, attacker, key, text):
            assert SECRET not in without_questions(text_of(answer))
            assert answer.status_code in (200, 201, 204, 400, 403, 404, 409)

        assert [rows_of(scope) for scope in victims] == before
        transaction.set_rollback(True)  # the next example has other victims


def without_questions(told: str) -> str:
    """Without what the request itself said."""
    return told.replace(f"tea {SECRET}", "").replace(f"Fact not found: {SECRET}", "")


def _scope(workspace: Workspace, user_id: str) -> UserScope | None:
    try:
        return user_scope(workspace=workspace, user_id=user_id)
    except InvalidInput:
        return None


def _storable(key: str, text: str) -> bool:
    try:
        fact_key(key)
    except InvalidInput:
        return False
    return bool(text.strip()) and fact_key(key) != SECRET
