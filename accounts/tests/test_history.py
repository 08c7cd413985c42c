"""History: who changed what, and no text of it."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.utils import timezone

from accounts import audit
from accounts.audit import Action, Channel, Kind, acting, record_change
from accounts.middleware import audit_actor
from accounts.models import Change, Membership, Role
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def member() -> Membership:
    return MembershipFactory()


def noted(member: Membership, **more: object) -> Change:
    told: dict[str, object] = {"action": Action.CHANGED, "kind": Kind.NODE, "object_id": 7} | more
    record_change(workspace_id=member.workspace_id, **told)  # type: ignore[arg-type]
    return Change.objects.latest("id")


def test_a_change_names_who_acts_where_and_with_what(member: Membership) -> None:
    key, _ = make_key(member)
    with acting(channel=Channel.API, user=member.user, key=key):
        row = noted(member)
    assert (row.user, row.key, row.door) == (member.user, key, "api")
    assert (row.kind, row.thing, row.count, row.action) == ("node", 7, 1, "changed")


def test_what_the_site_or_a_stranger_does_is_nobodys(member: Membership) -> None:
    row = noted(member)
    assert (row.user, row.key, row.door) == (None, None, "")
    with acting(channel=Channel.PAGE, user=AnonymousUser()):
        assert noted(member).user is None


def test_whoever_acted_before_acts_again_afterwards(member: Membership) -> None:
    with acting(channel=Channel.PAGE, user=member.user):
        with acting(channel=Channel.TOOL, user=None):
            assert audit.current_actor().door == "tool"
        assert audit.current_actor().user == member.user
    assert audit.current_actor() == audit.NO_ACTOR


def test_the_user_of_a_request_acts_while_it_is_answered(member: Membership) -> None:
    request = RequestFactory().post("/admin/x/")
    request.user = member.user
    acted: list[audit.Actor] = []

    def view(_: object) -> None:
        acted.append(audit.current_actor())

    audit_actor(view)(request)  # type: ignore[arg-type]

    assert [(each.user_id, each.door) for each in acted] == [(member.user_id, "admin")]
    assert audit.current_actor() == audit.NO_ACTOR


@pytest.mark.parametrize(
    "value",
    ["a title", b"bytes", ["a", "list"], {"a": "mapping"}, object()],
    ids=lambda value: type(value).__name__,
)
def test_text_is_refused(member: Membership, value: object) -> None:
    with pytest.raises(TypeError, match=r"keeps no text: “title”"):
        noted(member, values={"title": value})
    assert not Change.objects.exists()


def test_values_are_numbers_dates_and_choices(member: Membership) -> None:
    moment = timezone.now()
    row = noted(
        member,
        fields=["role", "name"],
        values={"role": (Role.OWNER, Role.EDITOR), "k": 3, "at": moment, "on": True, "was": None},
    )
    assert row.details == {
        "fields": ["name", "role"],
        "values": {
            "role": ["owner", "editor"],
            "k": 3,
            "at": moment.isoformat(),
            "on": True,
            "was": None,
        },
    }


def test_many_things_are_one_change(member: Membership) -> None:
    row = noted(member, object_id=[3, 1, 2])
    assert (row.thing, row.count, row.details) == (None, 3, {"ids": [3, 1, 2]})


def test_no_things_are_no_change(member: Membership) -> None:
    for none in ({"object_id": []}, {"object_id": None, "count": 0}):
        told = {"action": Action.DELETED, "kind": Kind.NODE, **none}
        record_change(workspace_id=member.workspace_id, **told)  # type: ignore[arg-type]
    assert not Change.objects.exists()


def test_a_document_tells_of_what_is_in_it_and_a_collection_too(member: Membership) -> None:
    with acting(channel=Channel.PAGE, user=member.user):
        of_chunk = noted(member, kind=Kind.CHUNK, object_id=9, document_id=5, collection_id=2)
        of_document = noted(member, kind=Kind.DOCUMENT, object_id=5, collection_id=2)
        of_collection = noted(member, kind=Kind.COLLECTION, object_id=2)
        noted(member, kind=Kind.DOCUMENT, object_id=6, collection_id=3)
    assert list(Change.objects.about("document", 5)) == [of_document, of_chunk]
    assert list(Change.objects.about("collection", 2)) == [of_collection, of_document, of_chunk]
    assert list(Change.objects.about("chunk", 9)) == [of_chunk]


def test_only_who_may_change_things_there_sees_who_did(member: Membership) -> None:
    noted(member)
    viewer, editor = (
        MembershipFactory(workspace=member.workspace, role=role)
        for role in (Role.VIEWER, Role.EDITOR)
    )
    elsewhere = MembershipFactory()
    MembershipFactory(workspace=member.workspace, user=elsewhere.user, role=Role.VIEWER)
    for user in (member.user, editor.user):
        assert Change.objects.visible_to(user).count() == 1
    superuser = UserFactory(is_superuser=True)
    for stranger in (viewer.user, elsewhere.user, MembershipFactory().user, superuser):
        assert not Change.objects.visible_to(stranger).exists()


def test_a_workspace_takes_its_history_along_and_a_user_only_the_name(member: Membership) -> None:
    with acting(channel=Channel.PAGE, user=member.user):
        row = noted(member)
    member.user.delete()
    row.refresh_from_db()
    assert row.user is None
    member.workspace.delete()
    assert not Change.objects.exists()


def test_notes_about_a_memory_go_with_it(member: Membership) -> None:
    noted(member, kind=Kind.FACT, memory_of="alice")
    kept = noted(member, kind=Kind.FACT, memory_of="bob")
    assert "alice" not in str(list(Change.objects.values()))
    assert audit.delete_subject_history(workspace_id=member.workspace_id, memory_of="alice") == 1
    assert list(Change.objects.all()) == [kept]


def test_old_changes_are_pruned(member: Membership, settings: object) -> None:
    settings.HISTORY_DAYS = 30  # type: ignore[attr-defined]
    old, new = noted(member), noted(member)
    Change.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))
    assert audit.prune_changes() == 1
    assert list(Change.objects.all()) == [new]
