"""A request with a key is done once, whoever sends it how often, and whatever dies meanwhile."""

from datetime import timedelta

import pytest
from django.db.models import F

from accounts import idempotency
from accounts.models import IdempotencyRecord, Membership
from accounts.tasks import prune_idempotency_records
from documents.tests.factories import MembershipFactory

pytestmark = pytest.mark.django_db
DONE = {"status": 201, "body": '{"slug": "notes"}', "location": "/notes/"}


def begin(member: Membership, key: str = "key", fingerprint: str = "one") -> IdempotencyRecord:
    return idempotency.claim_or_replay(
        user=member.user, workspace=member.workspace, key=key, fingerprint=fingerprint
    )


def is_done(record: IdempotencyRecord) -> bool:
    return all(getattr(record, name) == value for name, value in DONE.items())


def finish(member: Membership, key: str = "key") -> None:
    assert idempotency.claimed(begin(member, key)).update(**DONE)


def pass_by(**delta: float) -> None:
    """As if the records had been written so much earlier: it is the database's time that counts."""
    passed = timedelta(**delta)
    IdempotencyRecord.objects.update(
        leased_until=F("leased_until") - passed, created_at=F("created_at") - passed
    )


def test_a_key_belongs_to_its_user_and_workspace(alice: Membership) -> None:
    finish(alice)
    elsewhere = MembershipFactory(user=alice.user)
    bob = MembershipFactory(workspace=alice.workspace)
    assert begin(elsewhere).status is None
    assert begin(bob).status is None


def test_what_was_given_up_may_be_done_anew(alice: Membership) -> None:
    idempotency.claimed(begin(alice)).delete()
    assert begin(alice).status is None


def test_a_request_whose_process_died_may_be_made_again(alice: Membership) -> None:
    dead = begin(alice)
    pass_by(seconds=idempotency.LEASE.total_seconds() + 1)
    alive = begin(alice)
    assert not idempotency.claimed(dead).exists()
    idempotency.claimed(alive).update(**DONE)
    assert is_done(begin(alice))


def test_an_answer_is_kept_for_a_day(alice: Membership) -> None:
    finish(alice)
    pass_by(hours=23)
    assert is_done(begin(alice))
    pass_by(hours=2)
    assert begin(alice, fingerprint="another").status is None


def test_old_and_dead_records_are_pruned_and_no_others(alice: Membership) -> None:
    finish(alice, "old")
    begin(alice, "dead")
    pass_by(hours=25)
    finish(alice, "young")
    begin(alice, "working")
    assert prune_idempotency_records() == 2
    left = IdempotencyRecord.objects.values_list("key", flat=True)
    assert set(left) == {"young", "working"}


@pytest.mark.parametrize("key", ["k", "k" * 255, "c709fc04-73f9-427a", '"quoted, with spaces"'])
def test_any_printable_ascii_is_a_key(key: str) -> None:
    idempotency.check_key(key)
