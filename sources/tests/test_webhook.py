"""A signed call starts a run; what is not signed, old, or too much does not."""

import hmac
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.audit import Kind
from accounts.models import Change, Role
from documents.tests.factories import CollectionFactory, MembershipFactory
from sources import runs, services, signatures
from sources.models import DataSource, DataSourceRun

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

BODY = b'{"ref": "refs/heads/main"}'


@pytest.fixture
def source(tmp_path: Path) -> DataSource:
    (tmp_path / "rail.md").write_text("Trains are booked by the office.")
    return services.create_source(
        collection=CollectionFactory(),
        name="Team",
        connector="folder",
        options={"path": str(tmp_path)},
    )


def call(source_id: int, headers: dict[str, str], body: bytes = BODY) -> Any:
    return Client().post(
        f"/hooks/sources/{source_id}/", body, content_type="application/json", headers=headers
    )


def signed(secret: str, *, at: float | None = None) -> dict[str, str]:
    at = int(time.time() if at is None else at)
    return signatures.sign(BODY, secret=secret, message_id="msg_1", at=at)


def github(secret: str) -> dict[str, str]:
    digest = hmac.new(secret.encode(), BODY, "sha256").hexdigest()
    return {"X-Hub-Signature-256": f"sha256={digest}"}


def test_a_call_signed_in_any_of_the_three_ways_starts_a_run(source: DataSource) -> None:
    secret = services.make_webhook_secret(source=source)
    for headers in (signed(secret), github(secret), {"X-Gitlab-Token": secret}):
        answer = call(source.pk, headers)
        assert answer.status_code == 202
        run = runs.work_on(source.pk)
        assert run is not None
        assert run.pk == answer.json()["run"]
        assert (run.cause, run.state, run.user) == ("webhook", "succeeded", None)
    assert call(source.pk, github(secret) | {"X-GitHub-Event": "ping"}).json()["run"] is None
    assert source.runs.count() == 3


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of the specification's reference implementations."""
    headers = signatures.sign(
        b'{"test": 2432232314}',
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1614265330,
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_whatever_is_not_signed_with_the_secret_is_refused(source: DataSource) -> None:
    unset = call(source.pk, {"X-Gitlab-Token": ""})
    secret = services.make_webhook_secret(source=source)
    other = signatures.new_secret()
    right = signed(secret)
    wrong = [
        {},
        signed(other),
        github(other),
        {"X-Gitlab-Token": other},
        {"X-Gitlab-Token": "ä"},
        right | {"webhook-timestamp": str(int(right["webhook-timestamp"]) + 1)},
        right | {"webhook-id": "msg_2"},
        right | {"webhook-timestamp": "soon"},
    ]
    answers = [call(source.pk, headers) for headers in wrong]
    answers += [unset, call(source.pk + 1000, right)]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    for seconds in (-301, 360):  # the second shrinks while the request is on its way
        late = call(source.pk, signed(secret, at=time.time() + seconds))
        assert late.status_code == 401
        assert "Sign each call anew" in late.json()["detail"]
    assert call(source.pk, right, BODY + b" ").status_code == 401
    assert Client().get(f"/hooks/sources/{source.pk}/").status_code == 405
    services.make_webhook_secret(source=source)
    assert call(source.pk, right).status_code == 401
    services.remove_webhook(source=source)
    assert call(source.pk, right).status_code == 401
    assert not source.runs.exists()


def test_many_calls_while_it_is_read_make_one_more_run(
    source: DataSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = services.make_webhook_secret(source=source)
    first = call(source.pk, signed(secret)).json()["run"]
    # not begun yet: its listing will show what has changed
    assert call(source.pk, signed(secret)).json()["run"] == first

    def call_and_go_on(source: DataSource, *args: Any, **options: Any) -> Any:
        if source.runs.count() == 1:
            for _ in range(5):
                assert call(source.pk, signed(secret)).json()["run"] is None
        return original(source, *args, **options)

    original = runs.Synchronisation._list.__globals__["compare"]
    monkeypatch.setattr("sources.synchronisation.compare", call_and_go_on)
    while runs.work_on(source.pk):
        pass
    assert source.runs.count() == 2
    assert set(source.runs.values_list("state", flat=True)) == {DataSourceRun.State.SUCCEEDED}


def test_a_run_that_was_called_and_failed_is_tried_again_and_one_that_was_cancelled_is_not(
    source: DataSource, tmp_path: Path
) -> None:
    away = tmp_path.with_name("away")
    tmp_path.rename(away)
    secret = services.make_webhook_secret(source=source)
    call(source.pk, signed(secret))
    run = runs.work_on(source.pk)
    away.rename(tmp_path)
    assert run is not None
    assert run.state == DataSourceRun.State.FAILED
    source.refresh_from_db()
    assert source.due_at is not None
    services.start_run(source=source, enqueue=False)
    services.cancel_run(run=source.runs.latest("id"))
    DataSource.objects.update(run_again=True)
    run = runs.work_on(source.pk)
    assert run is not None
    assert run.state == DataSourceRun.State.CANCELLED
    source.refresh_from_db()
    assert (source.due_at, source.run_again) == (None, False)


def test_calls_are_limited_and_start_nothing_that_has_stopped(
    source: DataSource, settings: Any
) -> None:
    settings.HOOK_RATE = settings.LOGIN_ADDRESS_RATE = "2/minute"
    secret = services.make_webhook_secret(source=source)
    DataSource.objects.update(state=DataSource.State.DEAD)
    answers = [call(source.pk, signed(secret)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [409, 409, 429]
    assert "Open its page and resolve the problem first" in answers[0].json()["detail"]
    answer = call(source.pk, signed(secret))
    assert int(answer.headers["Retry-After"]) > 0
    address = {"REMOTE_ADDR": "203.0.113.7"}
    bad = [Client(**address).post(f"/hooks/sources/{source.pk}/").status_code for _ in range(3)]
    assert bad == [401, 401, 429]


def test_the_page_makes_the_secret_and_shows_it_once(client: Client, source: DataSource) -> None:
    member = MembershipFactory(workspace=source.workspace, role=Role.EDITOR)
    client.force_login(member.user)
    page = f"/sources/{source.pk}/webhook/"
    assert f"/hooks/sources/{source.pk}/" in client.get(page).content.decode()
    made = client.post(page, {"act": "make"})
    assert made.headers["Cache-Control"] == "no-store"
    secret = made.content.decode().split("<code>whsec_")[1].split("<")[0]
    assert call(source.pk, signed(f"whsec_{secret}")).status_code == 202
    assert "by its webhook" in client.get(f"/sources/{source.pk}/").content.decode()
    assert secret not in client.get(page).content.decode()
    source.refresh_from_db()
    assert secret.encode() not in bytes(source.webhook_secret)
    change = Change.objects.filter(kind=Kind.SOURCE, user=member.user).latest("id")
    assert change.details["fields"] == ["webhook"]
    client.post(page, {"act": "remove"})
    assert call(source.pk, signed(f"whsec_{secret}")).status_code == 401
