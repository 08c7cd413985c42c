"""People and programs are told of a source that is late, fails or stops: once, and when it is well.

Messages go to a real mail server and a real receiver of the webhook.
"""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import time_machine
from aiosmtpd.controller import Controller
from django.core.cache import cache
from django.core.mail.utils import DNS_NAME
from django.utils import timezone

from accounts.models import Membership, Role
from documents.tests.factories import CollectionFactory, MembershipFactory
from sources import notices, runs, services, signatures, tasks
from sources.models import DataSource, DataSourceNotice, DataSourceRun
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

Problem = DataSource.Problem


class MailServer:
    """Keeps what it takes; refuses addresses of `refused`."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.recipients: list[str] = []
        self.refused: set[str] = set()

    async def handle_RCPT(  # noqa: N802 (aiosmtpd's name)
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        self.recipients += envelope.rcpt_tos
        return "250 OK"


@pytest.fixture
def mail_server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    monkeypatch.setattr(DNS_NAME, "_fqdn", "localhost", raising=False)  # asked for seconds
    server = MailServer()
    controller = Controller(server, hostname="127.0.0.1", port=0)
    # its own `start` asks the port that it was given, which is 0
    ready = threading.Event()
    thread = threading.Thread(target=controller._run, args=(ready,), daemon=True)
    controller._thread = thread
    thread.start()
    assert ready.wait(5)
    assert controller.server is not None
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = controller.server.sockets[0].getsockname()[1]
    settings.SITE_URL = "https://rag.example.org/"
    yield server
    controller.stop(no_assert=True)


class Receiver:
    """An address that takes calls: their bodies and headers."""

    def __init__(self, settings: Any) -> None:
        self.calls: list[tuple[bytes, dict[str, str]]] = []
        self.status = 204
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.calls.append((body, headers))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        settings.NOTICE_WEBHOOK = f"http://127.0.0.1:{self.server.server_port}/notices"
        settings.NOTICE_WEBHOOK_SECRET = self.secret = signatures.new_secret()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    receiver = Receiver(settings)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.02,))
    thread.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
    thread.join()


@pytest.fixture
def owner() -> Membership:
    return MembershipFactory(role=Role.OWNER, user__email="owner@example.org", user__language="de")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "salaries-of-march.md").write_text("What everybody earns.")
    return folder


@pytest.fixture
def source(owner: Membership, folder: Path, settings: Any) -> DataSource:
    settings.INGEST_ROOTS = [str(folder)]
    editor = MembershipFactory(
        workspace=owner.workspace, role=Role.EDITOR, user__email="editor@example.org"
    )
    for role in (Role.EDITOR, Role.VIEWER):  # who are not told
        MembershipFactory(workspace=owner.workspace, role=role, user__email="x@example.org")
    return services.create_source(
        collection=CollectionFactory(workspace=owner.workspace),
        name="Team",
        connector="folder",
        options={"path": str(folder)},
        schedule="15",
        user=editor.user,
    )


def read(source: DataSource, **options: Any) -> str:
    services.start_run(source=source, enqueue=False, **options)
    run = runs.work_on(source.pk, seconds=None)
    assert run is not None
    source.refresh_from_db()
    return run.state


def fail(source: DataSource, folder: Path, times: int) -> None:
    folder.rename(folder.with_name("away"))
    for _ in range(times):
        assert read(source) == "failed"
    folder.with_name("away").rename(folder)


def test_a_source_that_fails_is_told_once_and_when_it_is_well(
    source: DataSource, owner: Membership, folder: Path, mail_server: MailServer, receiver: Receiver
) -> None:
    read(source)
    fail(source, folder, times=notices.FAILED_RUNS - 1)
    assert tasks.send_notices() == 0
    fail(source, folder, times=3)
    assert source.problem == Problem.FAILING
    assert tasks.send_notices() == 3
    assert sorted(mail_server.recipients) == ["editor@example.org", "owner@example.org"]
    german = mail_server.mails[mail_server.recipients.index("owner@example.org")]
    assert german["To"] == "owner@example.org"
    assert "„Team“ kann nicht gelesen werden" in german["Subject"]
    (body, headers), *more = receiver.calls
    assert not more
    signatures.verify(body, headers, secret=receiver.secret)
    told = json.loads(body)
    assert told["type"] == "source.problem"
    assert told["data"]["problem"] == "failing"
    assert told["data"]["source"]["url"] == f"https://rag.example.org/sources/{source.pk}/"

    client = logged_in(owner)
    assert f'href="/sources/{source.pk}/"' in client.get("/dashboard/").content.decode()
    assert "Several runs in a row failed" in client.get(f"/sources/{source.pk}/").content.decode()

    assert read(source) == "succeeded"
    assert tasks.send_notices() == 3
    assert json.loads(receiver.calls[1][0])["type"] == "source.well"
    assert read(source) == "succeeded"
    assert tasks.send_notices() == 0
    everything = "".join(mail.as_string() for mail in mail_server.mails) + str(receiver.calls)
    assert "salaries" not in everything
    assert str(folder) not in everything
    assert not DataSourceNotice.objects.exists()


def test_a_run_that_would_delete_too_much_is_told_at_once_and_only_people_end_it(
    source: DataSource, folder: Path, receiver: Receiver
) -> None:
    read(source)
    (folder / "salaries-of-march.md").unlink()
    assert read(source) == "stopped"
    assert source.problem == Problem.STOPPED
    services.update_source(source=source, schedule="20")
    source.refresh_from_db()
    assert source.problem == Problem.STOPPED  # until it was read well
    assert read(source, allow_deletions=True) == "succeeded"
    assert source.problem == ""
    # Who was not told of the problem hears nothing of its end.
    assert tasks.send_notices() == 0
    assert not receiver.calls


def test_a_problem_that_becomes_worse_is_told_again(
    source: DataSource, folder: Path, receiver: Receiver
) -> None:
    read(source)
    fail(source, folder, times=3)
    tasks.send_notices()
    (folder / "salaries-of-march.md").unlink()
    read(source)
    tasks.send_notices()
    told = [json.loads(body)["data"] for body, _ in receiver.calls]
    assert [each["problem"] for each in told] == ["failing", "stopped"]
    assert told[0]["since"] == told[1]["since"]


def test_a_run_that_does_not_begin_is_late_but_not_after_the_site_has_slept(
    source: DataSource, receiver: Receiver
) -> None:
    cache.delete("sources.awake_since")
    due = source.due_at
    assert due is not None
    with time_machine.travel(due + timedelta(hours=9), tick=False) as now:
        assert notices.check_sources() == 0  # it has just woken
        for _ in range(6):
            now.shift(timedelta(minutes=10))
            assert notices.check_sources() == 0
        assert notices.describe_problem(source)  # pages say so without a worker
        now.shift(timedelta(minutes=1))
        assert notices.check_sources() == 1
        assert notices.check_sources() == 0
    source.refresh_from_db()
    assert source.problem == Problem.LATE
    services.update_source(source=source, schedule="")
    cache.delete("sources.awake_since")
    assert notices.check_sources() == 1
    source.refresh_from_db()
    assert source.problem == ""


def test_late_is_two_intervals_and_an_hour_at_least(source: DataSource) -> None:
    at = datetime(2026, 11, 26, 6, 0, tzinfo=UTC)
    source.due_at = at
    for schedule, hours in (("15", 1.0), ("180", 6.0), ("0 6 * * *", 48.0), ("", 0.0)):
        source.schedule = schedule
        late = [h for h in (0.9, 1.1, 5.9, 6.1, 47.9, 48.1) if is_late(source, at, h)]
        assert late == [h for h in (1.1, 5.9, 6.1, 47.9, 48.1) if hours and h > hours]


def is_late(source: DataSource, at: datetime, hours: float) -> bool:
    return notices.find_problem(source, now=at + timedelta(hours=hours)) == Problem.LATE


def test_what_cannot_be_sent_is_tried_again_and_each_address_for_itself(
    source: DataSource, mail_server: MailServer, receiver: Receiver, settings: Any
) -> None:
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    receiver.status = 503
    DataSource.objects.update(state=DataSource.State.DEAD)
    notices.update_problem(source.pk)
    tasks.send_notices()
    assert "cannot be reached" in DataSourceNotice.objects.exclude(error="")[0].error
    settings.EMAIL_PORT, mail_server.refused = port, {"owner@example.org"}
    make_due()
    tasks.send_notices()
    assert mail_server.recipients == ["editor@example.org"]
    left = {notice.user_id: notice for notice in DataSourceNotice.objects.all()}
    assert len(left) == 2
    assert left[None].error == "RAGSITE_NOTICE_WEBHOOK answers 503."
    receiver.status, mail_server.refused = 200, set()
    make_due()
    tasks.send_notices()
    assert sorted(mail_server.recipients) == ["editor@example.org", "owner@example.org"]
    ids = {headers["webhook-id"] for _, headers in receiver.calls}
    assert len(ids) == 1  # so that the receiver knows the second try
    assert not DataSourceNotice.objects.exists()


def make_due() -> None:
    DataSourceNotice.objects.update(due_at=timezone.now(), leased_until=None)


def test_nothing_is_written_where_nobody_can_be_told(source: DataSource, settings: Any) -> None:
    settings.EMAIL_HOST = settings.NOTICE_WEBHOOK = ""
    DataSource.objects.update(state=DataSource.State.DEAD)
    notices.update_problem(source.pk)
    assert not DataSourceNotice.objects.exists()
    assert DataSource.objects.get().problem == Problem.STOPPED


def test_runs_are_started_by_what_they_say(source: DataSource) -> None:
    runs.work_on(source.pk)
    assert source.runs.get().cause == DataSourceRun.Cause.SCHEDULE
