"""Whatever users are called and say: nobody is ever given, or loses, another's memory."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounts.models import Role
from common.errors import Forbidden, InvalidInput
from documents.tests.factories import MembershipFactory, UserFactory, WorkspaceFactory
from memory.models import Context, Fact
from memory.scopes import UserScope, account_id, scope_of, user_scope
from memory.services import (
    archive_turn,
    clear_fact,
    clear_memory,
    erase_memory,
    export_memory,
    forget_contexts,
    forget_fact,
    get_all_facts,
    get_fact,
    history,
    rank_facts,
    search_memory,
    set_fact,
)

#: Ids that a careless comparison, pattern, prefix or join would take for one another.
LOOKALIKES = (
    *("alice", "Alice", "ALICE", "alice ", " alice", "alice\t", "alice\n", "ａlice", "alic\u0435"),
    *("al%", "al_ce", "alice'--", "alice\\", '"alice"', "alice/bob", "alice,bob", "%", "_", "*"),
    *("1", "01", "1.0", "null", "None", "true", "local", "{}", "[]", "\u200balice", "alice\u0301"),
    *("' OR '1'='1", "x'; DROP TABLE memory_fact; --", "\\x00", "user", "é", "e\u0301", "ß", "ss"),
)
DISGUISES = ("{}", " {}", "{}\n", "\u200b{}", "\u00ad{}", "\ufeff{}")
ids = st.one_of(
    st.sampled_from(LOOKALIKES),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
).filter(lambda name: bool(name.strip()) and name.strip().casefold() != "unknown")
texts = st.one_of(
    st.sampled_from(["%", "' OR 1=1 --", "[facts: admin=true]", "\0", "\ud800", "the", "alice"]),
    st.text(max_size=40),
)


class Isolation(TestCase):
    @settings(max_examples=25, deadline=None)
    @given(names=st.lists(ids, min_size=2, max_size=2, unique=True), said=texts, key=texts)
    def test_another_user_gets_nothing_and_loses_nothing(
        self, names: list[str], said: str, key: str
    ) -> None:
        workspace = WorkspaceFactory()
        mine, theirs = (must(user_scope(workspace=workspace, user_id=name)) for name in names)
        secret = f"the secret of {said} is 4711"
        remember_secret(theirs, secret)
        kept = rows_of(theirs)
        fact_name = key if any(map(str.isalnum, key)) else "secret"

        found = search_memory(scope=mine, query="the secret 4711", threshold=0, k=100)
        assert (found.hits, found.searched) == ((), 0)
        assert rank_facts(scope=mine, query=secret, limit=100) == []
        assert get_all_facts(scope=mine) == []
        assert get_fact(scope=mine, key="secret") is None
        assert history(scope=mine, key="secret") == []
        assert b"4711" not in b"".join(export_memory(scope=mine))
        assert clear_memory(scope=mine, question=secret) == 0
        assert forget_contexts(scope=mine, ids=kept["contexts"]) == 0
        assert not clear_fact(scope=mine, key="secret")
        assert forget_fact(scope=mine, key="secret") == 0
        refusable(lambda: set_fact(scope=mine, key=fact_name, value=said))
        refusable(lambda: archive_turn(scope=mine, user_message=said, assistant_response=secret))
        erase_memory(scope=mine)

        assert rows_of(theirs) == kept
        assert rows_of(mine) == {"contexts": [], "facts": []}

    @settings(max_examples=30, deadline=None)
    @given(
        name=ids,
        disguise=st.sampled_from(DISGUISES),
    )
    def test_nobody_reaches_an_account_by_naming_it(self, name: str, disguise: str) -> None:
        workspace = WorkspaceFactory()
        alice, bob = UserFactory(), UserFactory()
        for user in (alice, bob):
            MembershipFactory(workspace=workspace, user=user, role=Role.OWNER)
        own = must(scope_of(user=bob, workspace=workspace))
        for spelling in (account_id(bob), account_id(bob).upper(), f"ｕser:{bob.pk}"):
            named = disguise.format(spelling)
            try:
                scope = scope_of(user=alice, workspace=workspace, user_id=named)
            except Forbidden:
                continue
            assert scope != own
            raise AssertionError(f"{named!r} was let through as {scope}")
        chosen = scope_of(user=alice, workspace=workspace, user_id=name)
        assert chosen is None or chosen == UserScope(workspace.pk, name)


def must(scope: UserScope | None) -> UserScope:
    assert scope is not None
    return scope


def remember_secret(scope: UserScope, secret: str) -> None:
    archive_turn(scope=scope, user_message=secret, assistant_response="I keep it.")
    set_fact(scope=scope, key="secret", value=secret)


def rows_of(scope: UserScope) -> dict[str, list[Any]]:
    return {
        "contexts": list(Context.objects.of(scope).order_by("pk").values_list("pk", flat=True)),
        "facts": list(Fact.objects.of(scope).order_by("pk").values_list("pk", "value", "valid_to")),
    }


def refusable(work: Callable[[], object]) -> None:
    """Hostile text may be refused; it may not do anything else."""
    try:
        work()
    except InvalidInput:
        return
