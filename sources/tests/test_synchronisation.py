"""A collection follows its source, whatever its kind: nothing lost, twice, or deleted wrongly."""

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group

from common.errors import Conflict, Forbidden, InvalidInput
from documents.models import Collection, Document
from documents.tests.factories import CollectionFactory
from documents.tests.web_server import Web, running
from documents.validation import validate
from sources import runs, services
from sources.connectors import connector_class
from sources.connectors.base import SourceError, Unfinished
from sources.models import DataSource, DataSourceRun
from sources.synchronisation import Comparison, doubt
from sources.tests.places import (
    GitPlace,
    MailPlace,
    Place,
    S3Place,
    SitePlace,
    WebDavPlace,
    file_of,
    opened,
)
from tests.kit import process_documents

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

KINDS = [Place, GitPlace, WebDavPlace, S3Place, MailPlace, SitePlace]
#: Kinds and seeds of random schedules.
RANDOM = [
    *((Place, seed) for seed in range(2)),
    *((kind, 4) for kind in (S3Place, MailPlace, SitePlace)),
]
State = DataSourceRun.State


def _id(value: Any) -> str:
    return str(getattr(value, "kind", value))


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="handbook", default_language="en")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.kind)
def place(
    request: Any, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.setattr("sources.connectors.http.TRIES", 1)
    settings.SOURCES_DIR = tmp_path / "cache"
    settings.SOURCE_NETWORKS = ["127.0.0.0/8", "::1/128"]
    with opened(request.param, tmp_path / "place") as place:
        place.write("leave.md", "Five days of leave can be carried over.")
        place.write("travel/rail.md", "Trains are booked by the office.")
        place.write("travel/bicycle.md", "A kilometre by bicycle is paid with 25 cents.")
        place.tell()
        yield place


def made(collection: Collection, place: Place, **values: Any) -> DataSource:
    return services.create_source(
        collection=collection,
        name="Team",
        connector=place.kind,
        options=place.options,
        **values,
    )


def read(source: DataSource, **options: Any) -> DataSourceRun:
    """A whole run, and all that the workers do for it."""
    services.start_run(source=source, enqueue=False, **options)
    run = runs.work_on(source.pk, seconds=None)
    assert run is not None
    assert run.is_finished
    process_documents()
    source.refresh_from_db()
    return run


def texts(collection: Collection) -> dict[str, str]:
    """The text of each document, by the name of its file."""
    rows = Document.objects.filter(collection=collection, is_current=True)
    return {file_of(row.source): "".join(chunk.text for chunk in row.chunks.all()) for row in rows}


def counts(run: DataSourceRun) -> dict[str, int]:
    names = ("new", "changed", "fetched", "renamed", "deleted", "failed")
    return {name: count for name in names if (count := getattr(run, name))}


def test_a_collection_follows_its_source(collection: Collection, place: Place) -> None:
    source = made(collection, place)
    assert counts(read(source)) == {"new": 3, "fetched": 3}
    assert texts(collection)["travel/rail.md"] == "Trains are booked by the office."

    assert counts(read(source)) == {}
    before = Document.objects.get(source__contains="bicycle.md").pk
    place.write("leave.md", "Six days of leave can be carried over.")
    place.remove("travel/rail.md")
    place.rename("travel/bicycle.md", "bicycle.md")
    place.tell()
    run = read(source)
    assert counts(run) == (
        {"new": 1, "changed": 1, "fetched": 1, "renamed": 1, "deleted": 1}
        if place.can_change
        else {"new": 2, "fetched": 1, "renamed": 1, "deleted": 2}
    )
    assert run.state == State.SUCCEEDED
    assert texts(collection) == {
        "leave.md": "Six days of leave can be carried over.",
        "bicycle.md": "A kilometre by bicycle is paid with 25 cents.",
    }
    assert (
        Document.objects.get(source__contains="bicycle.md").pk == before
    )  # renamed, not read again
    assert validate().findings == ()


def test_a_source_that_is_away_or_empty_deletes_nothing(
    collection: Collection, place: Place
) -> None:
    source = made(collection, place, schedule="5")
    read(source)
    place.leave()
    for failures in (1, 2, 3):
        assert read(source).state == State.FAILED
        assert source.failures == failures
        assert source.state == DataSource.State.WAITING  # and tries again by itself
        assert source.due_at is not None
    place.come_back()
    assert counts(read(source)) == {}
    assert source.failures == 0

    for name in list(texts(collection)):
        place.remove(name)
    place.tell()
    run = read(source)
    assert (run.state, source.state) == (State.STOPPED, DataSource.State.DEAD)
    assert "The source lists no files, but" in run.error
    assert len(texts(collection)) == 3
    assert counts(read(source, allow_deletions=True)) == {"deleted": 3}
    assert texts(collection) == {}


def test_a_run_asks_before_it_deletes_more_than_its_share() -> None:
    source = DataSource(max_deletions=50)
    many = Comparison(listed=9, known=20, gone=list(range(11)))
    assert "11 of 20 documents, more than 50 %" in doubt(source, many)
    assert doubt(source, Comparison(listed=11, known=22, gone=list(range(11)))) == ""
    assert doubt(source, Comparison(listed=1, known=11, gone=list(range(10)))) == ""
    assert doubt(DataSource(max_deletions=50, delete_missing=False), many) == ""


def test_nothing_is_deleted_on_the_word_of_a_listing_alone(
    collection: Collection, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made(collection, place)
    read(source)
    connector = connector_class(place.kind)
    whole = connector.list_items
    monkeypatch.setattr(connector, "list_items", lambda self: list(whole(self))[:1])
    assert counts(read(source)) == {}
    assert len(texts(collection)) == 3


def test_a_run_goes_on_where_it_was_killed(
    collection: Collection, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made(collection, place)
    connector = connector_class(place.kind)
    fetch, fetched = connector.fetch, []

    def dying(self: Any, item: Any, *args: Any, **options: Any) -> Any:
        if len(fetched) == 2:
            raise KeyboardInterrupt
        fetched.append(item.key)
        return fetch(self, item, *args, **options)

    monkeypatch.setattr("sources.synchronisation.FETCHED_ITEMS", 1)
    monkeypatch.setattr(connector, "fetch", dying)
    services.start_run(source=source, enqueue=False)
    with pytest.raises(KeyboardInterrupt):
        runs.work_on(source.pk)
    assert runs.work_on(source.pk) is None  # as long as its lease lasts
    with pytest.raises(Conflict):
        services.start_run(source=source, enqueue=False)

    DataSource.objects.update(leased_until="2020-01-01T00:00Z")
    monkeypatch.setattr(connector, "fetch", fetch)
    run = runs.work_on(source.pk)
    assert run is not None
    assert (run.state, run.fetched) == (State.SUCCEEDED, 3)
    assert DataSourceRun.objects.count() == 1


def test_a_long_listing_gives_others_their_turn_and_can_be_cancelled(
    collection: Collection, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SOURCES_DIR = tmp_path / "cache"
    settings.SOURCE_NETWORKS = ["127.0.0.0/8", "::1/128"]
    monkeypatch.setattr("sources.connectors.web_site.LISTING_SECONDS", -1.0)
    with opened(SitePlace, tmp_path / "place") as place:
        for name in "abc":
            place.write(f"{name}.md", f"Text {name}.")
        source = made(collection, place)
        services.start_run(source=source, enqueue=False)
        listed = []
        while (run := runs.work_on(source.pk)) and run.state == State.LISTING:
            listed.append(run.listed)
        assert listed == [0, 1, 2]
        assert run is not None
        assert (run.state, run.fetched) == (State.SUCCEEDED, 3)

        services.cancel_run(run=services.start_run(source=source, enqueue=False))
        cancelled = runs.work_on(source.pk)
        assert cancelled is not None
        assert cancelled.state == State.CANCELLED
        comparison, gone, _ = services.preview(source, is_patient=True)
        assert (comparison.unchanged, gone) == (3, [])
        monkeypatch.setattr("sources.connectors.web_cache.STALE_SECONDS", -1.0)
        with pytest.raises(Unfinished):
            services.preview(source)


def test_documents_get_the_lists_of_their_folder_also_later(
    collection: Collection, tmp_path: Path
) -> None:
    group = f"group:{Group.objects.create(name='travellers').pk}"
    place = Place(tmp_path / "place")
    place.write("all.md", "For everybody.")
    place.write("travel/rail.md", "For travellers.")
    rules = [{"glob": "travel/**", "access": [group]}]
    source = made(collection, place, access_rules=rules)
    read(source)
    assert dict(Document.objects.values_list("source", "access")) == {
        "all.md": None,
        "travel/rail.md": [group],
    }
    services.update_source(source=source, access=[group], access_rules=[])
    read(source)
    assert set(Document.objects.values_list("access__0", flat=True)) == {group}


def test_a_file_moved_into_a_folder_for_few_is_seen_by_few(
    collection: Collection, tmp_path: Path
) -> None:
    group = f"group:{Group.objects.create(name='board').pk}"
    place = Place(tmp_path / "place")
    place.write("plan.md", "We move in March.")
    place.write("board/open.md", "For everybody, by mistake.")
    source = made(collection, place)
    read(source)
    place.rename("plan.md", "board/plan.md")
    place.write("board/open.md", "For the board, and changed at the same time.")
    services.update_source(source=source, access_rules=[{"glob": "board/**", "access": [group]}])
    assert read(source).state == State.SUCCEEDED
    assert dict(Document.objects.values_list("source", "access")) == {
        "board/plan.md": [group],
        "board/open.md": [group],
    }
    assert texts(collection)["board/open.md"].endswith("at the same time.")


def test_a_source_whose_workers_died_each_time_can_be_read_again(
    collection: Collection, tmp_path: Path, settings: Any
) -> None:
    place = Place(tmp_path / "place")
    place.write("leave.md", "Five days.")
    source = made(collection, place)
    services.start_run(source=source, enqueue=False)
    DataSource.objects.update(attempts=settings.SOURCES_MAX_ATTEMPTS)
    assert runs.work_on(source.pk) is None
    source.refresh_from_db()
    assert source.state == DataSource.State.DEAD
    assert counts(read(source)) == {"new": 1, "fetched": 1}
    assert set(source.runs.values_list("state", flat=True)) == {State.FAILED, State.SUCCEEDED}


def test_a_very_long_mark_of_a_version_is_known_again(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "place")
    place.write("leave.md", "Five days.")
    source = made(collection, place)
    monkeypatch.setattr("sources.connectors.folder._version", lambda found: "v" * 300)
    assert counts(read(source)) == {"new": 1, "fetched": 1}
    assert counts(read(source)) == {}


def test_what_cannot_be_fetched_is_named_tried_thrice_and_no_more_until_it_changes(
    collection: Collection, tmp_path: Path, settings: Any
) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    place = Place(tmp_path / "place")
    place.write("large.md", "Too large. " * 100)
    place.write("small.md", "Small enough.")
    source = made(collection, place)
    for _ in range(3):
        run = read(source)
        assert (run.state, run.failed) == (State.PARTIAL, 1)
    assert "100 are allowed" in source.items.get(failures=3).error
    assert read(source).failed == 0
    place.write("large.md", "Not any more.")
    assert counts(read(source)) == {"new": 1, "fetched": 1}
    assert not source.items.filter(failures__gt=0).exists()


def test_a_password_is_kept_encrypted_and_a_wrong_one_stops_the_source(
    collection: Collection, tmp_path: Path, settings: Any
) -> None:
    settings.SOURCE_NETWORKS = ["127.0.0.0/8", "::1/128"]
    with opened(WebDavPlace, tmp_path / "place") as place:
        source = made(collection, place)
        password = place.options["password"]
        assert "password" not in source.options
        assert password.encode() not in bytes(source.credentials)
        elsewhere = {"url": "https://dav.example.org/team", "username": "ann"}
        with pytest.raises(InvalidInput, match="Enter the password again"):
            services.update_source(source=source, options=elsewhere)
        services.update_source(source=source, options=source.options | {"glob": "*.md"})
        settings.CREDENTIALS_KEYS = ["another key"]
        assert "another key" in read(source).error

        DataSource.objects.update(credentials=b"")
        source.refresh_from_db()
        services.update_source(source=source, options={**place.options, "password": "wrong"})
        assert "Check name and password" in read(source).error
        assert source.state == DataSource.State.DEAD


def test_a_server_inside_the_network_is_not_asked_unless_allowed(
    collection: Collection, tmp_path: Path, settings: Any
) -> None:
    settings.SOURCE_NETWORKS = []
    with opened(WebDavPlace, tmp_path / "place") as place:
        run = read(made(collection, place))
    assert "outside the public internet" in run.error


def test_a_repository_is_not_fetched_from_where_its_server_redirects_to(settings: Any) -> None:
    settings.SOURCE_NETWORKS = ["127.0.0.0/8", "::1/128"]
    with running(Web()) as inside, running(Web()) as web:
        web.redirect("/team/info/refs", inside.url("/team/info/refs", host="localhost"))
        with pytest.raises(SourceError, match="cannot be fetched"):
            services.first_items("git", {"url": web.url("/team", host="localhost")})
        assert inside.hosts == []


def test_people_name_only_folders_that_may_be_read(collection: Collection, tmp_path: Path) -> None:
    from documents.tests.factories import UserFactory

    with pytest.raises(Exception, match="RAGSITE_INGEST_ROOTS"):
        made(collection, Place(tmp_path), user=UserFactory())
    for address in (str(tmp_path), tmp_path.as_uri(), f"FILE://localhost{tmp_path}"):
        with pytest.raises(Forbidden, match="RAGSITE_INGEST_ROOTS"):
            services.first_items("git", {"url": address}, user=UserFactory())
    with pytest.raises(InvalidInput, match="kind"):
        services.first_items("ftp", {})
    with pytest.raises(InvalidInput, match="path"):
        services.first_items("folder", {"pth": "/"})


@pytest.mark.nightly
@pytest.mark.parametrize(("place", "seed"), RANDOM, indirect=["place"], ids=_id)
def test_random_changes_and_faults_lose_nothing_and_delete_nothing_that_is_there(
    place: Place, seed: int, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was fetched and was at the source all the time has its document all the time; after one
    run without faults both sides are equal."""
    choose = random.Random(seed)
    for name in ("leave.md", "travel/rail.md", "travel/bicycle.md"):
        place.remove(name)
    source = made(collection, place, max_deletions=100)
    connector = connector_class(place.kind)
    fetch, list_items = connector.fetch, connector.list_items
    fault = ""

    def faulty_fetch(self: Any, *args: Any, **options: Any) -> Any:
        if fault == "killed" and choose.random() < 0.3:
            raise KeyboardInterrupt
        if fault == "away" and choose.random() < 0.3:
            raise SourceError("away")
        return fetch(self, *args, **options)

    def faulty_list(self: Any) -> Iterator[Any]:
        for item in list_items(self):
            if fault == "half" and choose.random() < 0.3:
                raise SourceError("half a listing")
            if fault == "shortened" and choose.random() < 0.3:
                continue
            yield item

    monkeypatch.setattr(connector, "fetch", faulty_fetch)
    monkeypatch.setattr(connector, "list_items", faulty_list)
    monkeypatch.setattr("sources.synchronisation.FETCHED_ITEMS", 2)
    files: dict[str, str] = {}
    for step in range(12):
        kept = set(texts(collection)) & set(files)
        for _ in range(choose.randrange(4)):
            name = f"{choose.choice('abcdef')}.md"
            if name in files and choose.random() < 0.5:
                place.remove(name)
                files.pop(name)
            else:
                files[name] = f"Text {choose.randrange(5)} of step {step}."
                place.write(name, files[name])
                if not place.can_change:
                    kept.discard(name)
        fault = choose.choice(["", "killed", "away", "half", "shortened"])
        with suppress(KeyboardInterrupt, Conflict):
            services.start_run(source=source, enqueue=False, allow_deletions=True)
            runs.work_on(source.pk, seconds=choose.choice([0.0, None]))
        process_documents()
        assert kept & set(files) <= set(texts(collection))
        DataSource.objects.update(
            leased_until="2020-01-01T00:00Z", attempts=0, due_at="2020-01-01T00:00Z"
        )
    fault = ""
    while (run := runs.work_on(source.pk, seconds=None)) and not run.is_finished:
        pass
    source.items.update(failures=0)
    read(source, allow_deletions=True)
    assert texts(collection) == files
    assert validate().findings == ()
