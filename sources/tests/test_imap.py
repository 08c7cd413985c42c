"""Mailboxes as sources: messages with attachments, moved and renumbered ones, bounds and TLS."""

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from documents.models import Chunk, Collection, Document
from documents.tests.factories import CollectionFactory
from documents.tests.web_server import self_signed
from documents.validation import validate
from reading.tests.factories_mail import mail
from sources.connectors.base import ItemError, ItemGone, SourceError
from sources.connectors.imap import Imap, ImapOptions
from sources.tests.mail_server import MailServer
from sources.tests.places import MAIL_USER, PASSWORD, MailPlace, opened
from sources.tests.test_synchronisation import counts, made, read

MESSAGE = b"Subject: Minutes\r\nDate: Tue, 24 Nov 2026 10:00:00 +0000\r\n\r\nWe agreed.\r\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[MailPlace]:
    with opened(MailPlace, tmp_path / "place") as place:
        assert isinstance(place, MailPlace)
        yield place


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="mail", default_language="en")


def connector(place: MailPlace, **options: Any) -> Imap:
    return Imap(ImapOptions.model_validate(place.options | options))


def names(source: Imap) -> list[str]:
    with source:
        return [item.name for item in source.list_items()]


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root")
def test_a_moved_message_keeps_its_documents_and_a_deleted_one_takes_them_along(
    collection: Collection, place: MailPlace
) -> None:
    inner = mail("An older one.", subject="Older", attached={"c.txt": b"Words of c."})
    whole = mail(
        attached={"b.txt": b"Words of b.", "older.eml": inner, "odd.bin": b"\0"}
    ).as_bytes()
    place.write("Boiler", whole)
    source = made(collection, place)
    assert counts(read(source)) == {"new": 1, "fetched": 1}
    place.client.select_folder("INBOX")
    assert place.client.search("UNSEEN")  # reading it here does not mark it as read
    before = documents(collection)
    assert [name.partition("!/")[2] for name in before] == [
        *("", "b.txt", "odd.bin", "older.eml", "older.eml!/c.txt")
    ]

    place.rename("Boiler", "Repairs/Boiler")
    run = read(source)
    assert counts(run) == {"new": 1, "renamed": 1}
    after = documents(collection)
    assert list(after.values()) == list(before.values())
    assert all(name.startswith("Repairs/2026-03-03 Boiler.eml") for name in after)
    row = Document.objects.get(source__endswith="b.txt")
    assert row.metadata["mail"]["key"] == row.declared["part_of"] == row.key.partition("!/")[0]
    chunk = Chunk.objects.get(document=row)
    assert chunk.metadata["mail"]["key"] == row.declared["part_of"]
    assert counts(read(source)) == {}

    place.remove("Repairs/Boiler")
    place.write("Other", MESSAGE)
    assert counts(read(source)) == {"new": 1, "fetched": 1, "deleted": 1}
    assert list(documents(collection)) == ["INBOX/2026-11-24 Minutes.eml"]
    assert validate().findings == ()


def documents(collection: Collection) -> dict[str, int]:
    """Ids by names."""
    rows = Document.objects.filter(collection=collection, is_current=True)
    return dict(rows.order_by("source").values_list("source", "pk"))


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root")
def test_a_server_that_numbers_messages_anew_loses_and_doubles_nothing(
    collection: Collection, place: MailPlace
) -> None:
    texts = {f"Plans/{n}": MESSAGE.replace(b"Minutes", b"Minutes %d" % n) for n in range(4)}
    for name, text in texts.items():
        place.write(name, text)
    source = made(collection, place)
    assert counts(read(source)) == {"new": 4, "fetched": 4}
    before = documents(collection)
    with connector(place) as old:
        item = next(old.list_items())
    place.client.delete_folder("Plans")
    place.forget()
    with connector(place) as now:
        assert now.is_gone(item.key)  # with its folder
        for name, text in reversed(texts.items()):
            place.write(name, text)
        assert now.is_gone(item.key)  # its number is another message's
        with pytest.raises(ItemGone, match="renumbered"):
            now.fetch(item, place.root / "file", max_bytes=1000)
    assert counts(read(source)) == {"new": 4, "renamed": 4}
    assert set(documents(collection).values()) == set(before.values())
    assert counts(read(source)) == {}


def test_messages_are_listed_by_pages_and_fetched_by_pieces(
    place: MailPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sources.connectors.imap.SEARCHED_UIDS", 3)
    monkeypatch.setattr("sources.connectors.imap.LISTED_MESSAGES", 2)
    monkeypatch.setattr("sources.connectors.imap.FETCHED_BYTES", 40)
    for n in range(8):
        place.write(f"{n}", MESSAGE.replace(b"Minutes", b"Minutes %d" % n))
    place.remove("4")
    long = b"Subject: " + b"long " * 10_000 + b"\r\n\r\nText.\r\n"
    place.write("long", long)
    with connector(place) as source:
        items = list(source.list_items())
        assert [item.name[-5] for item in items[:-1]] == list("0123567")
        assert len(items[-1].name) < 100
        source.fetch(items[0], tmp_path / "file", max_bytes=1000)
        assert (tmp_path / "file").read_bytes() == MESSAGE.replace(b"Minutes", b"Minutes 0")
        with pytest.raises(ItemError, match="1,000 are allowed"):
            source.fetch(items[-1], tmp_path / "file", max_bytes=1000)
        assert not source.is_gone(items[0].key)


def test_folders_and_a_day_narrow_a_mailbox(place: MailPlace) -> None:
    for name in ("a", "Projects/Mill/b", "Spam/c", "Deleted Items/d"):
        place.write(name, MESSAGE)
    assert [name.rpartition("/")[0] for name in names(connector(place))] == [
        *("INBOX", "Projects/Mill")
    ]
    assert len(names(connector(place, folders="Inbox, Spam"))) == 2
    assert names(connector(place, folders="projects/**", since="2099-01-01")) == []
    with pytest.raises(SourceError, match=r"No folder matches Drafts\. .*Projects/Mill"):
        names(connector(place, folders="Drafts"))


def test_a_message_that_is_marked_as_deleted_is_gone(place: MailPlace) -> None:
    place.write("a", MESSAGE)
    place.write("b", MESSAGE)
    with connector(place) as source:
        first, _ = source.list_items()
        place.client.select_folder("INBOX")
        place.client.add_flags([int(first.key.rpartition("/")[2])], [b"\\Deleted"])
        assert source.is_gone(first.key)
        assert len(list(source.list_items())) == 1


def test_a_wrong_password_is_permanent_and_a_lost_connection_is_not(place: MailPlace) -> None:
    place.write("a", MESSAGE)
    place.write("Other/b", MESSAGE)
    for password in ("wrong", "fälsch"):
        with pytest.raises(SourceError, match="Check name and password") as told:
            names(connector(place, password=password))
        assert told.value.is_permanent
    with connector(place) as source:
        listing = source.list_items()
        item = next(listing)
        place.leave()
        with pytest.raises(SourceError) as told:
            list(listing)
        assert not told.value.is_permanent
        with pytest.raises(SourceError):
            source.is_gone(item.key)
        with pytest.raises(SourceError):
            source.fetch(item, place.root / "file", max_bytes=1000)


def test_certificates_are_checked_and_passwords_do_not_go_through_the_internet_in_the_clear(
    place: MailPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    for security, tls in (("tls", True), ("starttls", False)):
        server = MailServer(MAIL_USER, PASSWORD, context=context, tls=tls)
        server.start()
        options = {"security": security, "port": server.port}
        with pytest.raises(SourceError, match="not trusted"):
            names(connector(place, **options))
        with monkeypatch.context() as trusting:
            trusting.setenv("SSL_CERT_FILE", str(certificate))
            assert names(connector(place, **options)) == []
            trusting.setattr("sources.connectors.http.resolve_host", lambda *_: ["127.0.0.1"])
            with pytest.raises(SourceError, match="not trusted"):
                names(connector(place, host="mail.example.org", **options))
        server.close()
    for security, reason in (
        ("tls", "that the port fits the encryption"),
        ("starttls", "The server does not offer STARTTLS"),
    ):
        with pytest.raises(SourceError, match=reason):
            names(connector(place, security=security))
    monkeypatch.setattr("sources.connectors.imap.is_public", lambda address: True)
    with pytest.raises(SourceError, match="The password would cross the internet unencrypted"):
        names(connector(place))


def test_a_server_inside_the_network_is_not_asked_unless_allowed(
    place: MailPlace, settings: Any
) -> None:
    settings.SOURCE_NETWORKS = []
    with pytest.raises(SourceError, match="outside the public internet") as told:
        names(connector(place))
    assert told.value.is_permanent


@pytest.mark.parametrize("answer", [b"* OK x\r\n", b"* LIST () {999999999}\r\n", b"."])
def test_a_server_that_never_ends_an_answer_holds_nobody(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sources.connectors.imap.COMMAND_SECONDS", 0.5)
    monkeypatch.setattr("sources.connectors.imap.MAX_ANSWER_BYTES", 50_000)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"* OK hello\r\n")
                try:
                    while True:
                        connection.sendall(answer)
                        if len(answer) == 1:
                            over.wait(0.05)
                except OSError:
                    return

        over = threading.Event()
        threading.Thread(target=talk, daemon=True).start()
        options = {
            "host": "localhost",
            "port": listening.getsockname()[1],
            "security": "none",
            "username": "ann",
            "password": PASSWORD,
        }
        with pytest.raises(SourceError, match=r"takes too long|at once|timed out"):
            names(Imap(ImapOptions.model_validate(options)))
