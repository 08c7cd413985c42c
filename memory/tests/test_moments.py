"""Times that could not be read back are not stored: one such row would hide a whole memory."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from common.errors import InvalidInput
from memory import services
from memory.models import Context, Fact
from memory.store import as_utc
from memory.tests.factories import make_scope

FAR_EAST, FAR_WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "at",
    [
        datetime.max.replace(tzinfo=FAR_WEST),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=FAR_EAST),
        datetime.min.replace(tzinfo=UTC),
        datetime(2026, 1, 1),
    ],
    ids=str,
)
def test_a_time_out_of_reach_is_refused(at: datetime) -> None:
    scope = make_scope()
    with pytest.raises(InvalidInput):
        services.archive_turn(scope=scope, user_message="Hello", at=at)
    with pytest.raises(InvalidInput):
        services.set_fact(scope=scope, key="city", value="Rome", at=at)
    assert not Context.objects.exists()
    assert not Fact.objects.exists()


@pytest.mark.parametrize(
    "at", [datetime(9998, 12, 31, 23, tzinfo=FAR_WEST), datetime(2, 1, 1, tzinfo=FAR_EAST)], ids=str
)
def test_the_last_times_in_reach_are_read_back_in_every_zone(at: datetime) -> None:
    scope = make_scope()
    services.archive_turn(scope=scope, user_message="Hello", at=at)
    kept = Context.objects.get().created_at
    assert kept == as_utc(at) == at
    assert {kept.astimezone(zone) for zone in (FAR_EAST, FAR_WEST)} == {at}
