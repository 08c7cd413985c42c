"""A collection follows a directory: what is new, changed, renamed, gone; and nothing by mistake."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from accounts.models import Change, Workspace
from common.errors import Conflict, InvalidInput
from documents import services
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.services import SyncResult, sync_directory
from documents.tests.commands import run_command
from documents.tests.factories import CollectionFactory, DocumentFactory
from documents.validation import validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="notes", default_language="en")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    for name in ("one.txt", "two.txt", "deep/three.md"):
        write(folder / name, f"This is what {name} says of the matter.")
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sync(collection: Collection, folder: Path, **options: Any) -> SyncResult:
    return sync_directory(collection=collection, directory=folder, **options)


def run_sync(collection: Collection, folder: Path, *options: str) -> tuple[int, str]:
    where = ("--collection", "notes", "--workspace", collection.workspace.slug)
    return run_command("sync", str(folder), *where, *options)


def changes(result: SyncResult) -> dict[str, Any]:
    """The files that are not as they were."""
    names = ("new", "modified", "renamed", "deleted", "failed", "retried")
    return {name: listed for name in names if (listed := getattr(result, name))}


def names(collection: Collection, folder: Path) -> set[str]:
    keys = Document.objects.filter(collection=collection).values_list("key", flat=True)
    return {str(Path(key).relative_to(folder.resolve())) for key in keys}


def chunk_ids(collection: Collection) -> set[int]:
    return set(Chunk.objects.filter(collection=collection).values_list("id", flat=True))


ALL = {"one.txt", "two.txt", "deep/three.md"}


def test_a_collection_follows_its_directory(collection: Collection, folder: Path) -> None:
    first = sync(collection, folder)
    assert changes(first) == {"new": ["one.txt", "two.txt", "deep/three.md"]}
    before = chunk_ids(collection)
    second = sync(collection, folder)
    assert (changes(second), set(second.unchanged)) == ({}, ALL)
    assert (names(collection, folder), chunk_ids(collection)) == (ALL, before)

    write(folder / "new.txt", "This one was not here before.")
    write(folder / "one.txt", "This one says something else now.")
    (folder / "two.txt").unlink()
    result = sync(collection, folder)
    expected: dict[str, Any] = {"new": ["new.txt"], "modified": ["one.txt"], "deleted": ["two.txt"]}
    assert (changes(result), result.unchanged) == (expected, ["deep/three.md"])
    assert not result.deletions_applied  # not asked for
    assert names(collection, folder) == ALL | {"new.txt"}
    (folder / "new.txt").rename(folder / "renamed.txt")
    expected = {"renamed": [("new.txt", "renamed.txt")], "deleted": ["two.txt"]}
    planned = sync(collection, folder, delete=True, dry_run=True)
    assert (changes(planned), planned.run) == (expected, None)
    assert names(collection, folder) == ALL | {"new.txt"}
    result = sync(collection, folder, delete=True)
    assert (changes(result), result.deletions_applied) == (expected, True)
    assert names(collection, folder) == {"one.txt", "renamed.txt", "deep/three.md"}
    assert validate().is_clean


def test_a_comparison_reads_known_files_once_and_new_ones_not_at_all(
    collection: Collection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from documents.ingestion import sources

    sync(collection, folder)
    write(folder / "new.txt", "This one was not here before.")
    whole, read = sources.content_from_file, []

    def counted(path: Path, **options: Any) -> sources.Content:
        read.append(path.name)
        return whole(path, **options)

    monkeypatch.setattr(sources, "content_from_file", counted)
    sync(collection, folder, dry_run=True)
    assert sorted(read) == ["one.txt", "three.md", "two.txt"]


def test_a_file_that_failed_is_retried_and_not_modified(
    collection: Collection, folder: Path
) -> None:
    write(folder / "bad.pdf", "%PDF-1.7 cut off")
    code, printed = run_sync(collection, folder, "--json")
    report = json.loads(printed)
    assert (code, set(report["new"]), report["counts"]["new"]) == (1, ALL | {"bad.pdf"}, 4)
    assert [failure["name"] for failure in report["run"]["failures"]] == ["bad.pdf"]
    result = sync(collection, folder, dry_run=True)
    assert changes(result) == {"retried": ["bad.pdf"]}
    assert "ends too early" in result.reasons["bad.pdf"]
    _, printed = run_sync(collection, folder, "--dry-run")
    assert f"failed, to be tried again: bad.pdf: {result.reasons['bad.pdf']}\n" in printed
    assert sync(collection, folder).run.failed == 1  # type: ignore[union-attr]

    (folder / "one.txt").write_bytes(b"\0\1\2" * 100)
    sync(collection, folder)
    assert set(sync(collection, folder, dry_run=True).retried) == {"bad.pdf", "one.txt"}
    write(folder / "one.txt", "This one can be read again.")
    assert sync(collection, folder, dry_run=True).modified == ["one.txt"]


def test_a_renamed_file_keeps_its_chunks(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    before = chunk_ids(collection)
    (folder / "one.txt").rename(folder / "deep" / "first.txt")
    (folder / "deep").rename(folder / "elsewhere")
    result = sync(collection, folder, delete=True)
    moves = [("one.txt", "elsewhere/first.txt"), ("deep/three.md", "elsewhere/three.md")]
    assert changes(result) == {"renamed": moves}
    moved = Document.objects.get(key=str(folder.resolve() / "elsewhere" / "first.txt"))
    assert (moved.source, moved.title) == ("elsewhere/first.txt", "First")
    assert chunk_ids(collection) == before
    assert result.run is not None
    assert result.run.embedded == 0
    assert changes(sync(collection, folder)) == {}
    # Neither a copy is a renamed file, nor the same bytes that are to be read in another way.
    text = (folder / "two.txt").read_text()
    write(folder / "copy.txt", text)
    assert changes(sync(collection, folder, delete=True)) == {"new": ["copy.txt"]}
    (folder / "two.txt").rename(folder / "two.md")
    result = sync(collection, folder, delete=True)
    assert changes(result) == {"new": ["two.md"], "deleted": ["two.txt"]}
    (folder / "copy.txt").rename(folder / "a.txt")
    write(folder / "b.txt", text)
    result = sync(collection, folder, delete=True)
    assert changes(result) == {"new": ["b.txt"], "renamed": [("copy.txt", "a.txt")]}


def test_documents_of_other_places_are_left_alone(
    collection: Collection, tmp_path: Path, folder: Path
) -> None:
    for other in ("folder-2", "folderXd", "other", "a_b%", "axbyy"):
        write(tmp_path / other / "kept.txt", f"This is of {other}.")
        sync(collection, tmp_path / other)
        if other != "a_b%":
            (tmp_path / other / "kept.txt").unlink()
    DocumentFactory(collection=collection, key="uploaded.txt")
    key = str(folder.resolve() / "note")
    services.ingest_text(collection=collection, key=key, text="Given by a program.")
    sync(collection, folder)
    assert changes(sync(collection, folder, delete=True)) == {}
    assert changes(sync(collection, tmp_path / "a_b%", delete=True)) == {}


def test_a_glob_narrows_both_sides(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "one.txt").unlink()
    (folder / "deep" / "three.md").unlink()
    write(folder / "four.md", "This is Markdown.")
    result = sync(collection, folder, glob="**/*.md", delete=True)
    assert changes(result) == {"new": ["four.md"], "deleted": ["deep/three.md"]}
    assert names(collection, folder) == {"one.txt", "two.txt", "four.md"}


def test_a_bundle_of_chunk_files_is_one_document(collection: Collection, folder: Path) -> None:
    files = [folder / "leaflets" / f"leaflet_chunk_{number:03}.json" for number in range(3)]
    for number, file in enumerate(files):
        text = f"Passage number {number} of the leaflet."
        record = {
            "chunk_id": file.stem,
            "source_document": "leaflet",
            "chunk_text": text,
            "original_text": text,
            "token_count": 8,
            "metadata": {},
        }
        write(file, json.dumps(record))
    sync(collection, folder)
    assert "leaflets/leaflet" in names(collection, folder)
    files[2].unlink()
    result = sync(collection, folder, delete=True)
    assert changes(result) == {"modified": ["leaflet.chunks.jsonl"]}
    files[1].unlink()
    write(files[0], '{"chunk_id": "cut off')  # which may be of any document
    result = sync(collection, folder, delete=True)
    assert changes(result) == {"failed": ["leaflets/leaflet_chunk_000.json"]}
    assert "leaflets/leaflet" in names(collection, folder)
    files[0].unlink()
    assert changes(sync(collection, folder, delete=True)) == {"deleted": ["leaflets/leaflet"]}
    assert names(collection, folder) == ALL


def test_a_file_that_is_there_and_cannot_be_read_is_not_deleted(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)
    (folder / "one.txt").unlink()
    (folder / "one.txt").symlink_to(folder / "nowhere")
    assert changes(sync(collection, folder, delete=True)) == {"failed": ["one.txt"]}
    assert names(collection, folder) == ALL


def test_a_file_that_comes_back_meanwhile_is_not_deleted(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)
    (folder / "one.txt").unlink()

    def restore(run: IngestionRun) -> None:
        write(folder / "one.txt", "It was only moved for a moment.")

    assert sync(collection, folder, delete=True, on_progress=restore).deleted == ["one.txt"]
    assert names(collection, folder) == ALL


def test_a_directory_that_is_suddenly_not_there_deletes_nothing(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)

    def assert_refused() -> None:
        with pytest.raises(InvalidInput, match="Nothing was changed"):
            sync(collection, folder, delete=True, allow_deletions=True)
        assert names(collection, folder) == ALL

    folder.rename(folder.with_name("unmounted"))
    assert_refused()
    code, printed = run_sync(collection, folder)
    assert (code, "not a directory" in printed) == (2, True)
    folder.write_text("no directory")
    assert_refused()
    folder.unlink()
    folder.mkdir()
    assert_refused()
    code, printed = run_sync(collection, folder, "--delete", "--dry-run")
    assert (code, printed.count("deleted: ")) == (0, 3)
    assert "If this is intended: --allow-empty." in printed
    _, printed = run_sync(collection, folder, "--delete", "--dry-run", "--json")
    assert json.loads(printed)["refused"]["option"] == "allow_empty"
    assert len(sync(collection, folder, delete=True, allow_empty=True).deleted) == 3
    assert names(collection, folder) == set()


def test_more_than_ten_and_more_than_half_are_deleted_only_if_allowed(
    collection: Collection, folder: Path
) -> None:
    files = [folder / f"{number}.txt" for number in range(12)]
    for file in files:
        write(file, f"Number {file.stem} of the files.")
    sync(collection, folder)
    for file in files:
        file.unlink()
    with pytest.raises(InvalidInput, match="set `allow_deletions`"):
        sync(collection, folder, delete=True)
    code, printed = run_sync(collection, folder, "--delete", "--dry-run")
    assert (code, printed.count("deleted: ")) == (0, 12)
    assert (
        "Nothing was changed: this was a dry run.\n"
        "Without --dry-run this is refused: 12 of 15 documents would be deleted, more than half."
        " If this is intended: --allow-deletions.\n"
    ) in printed
    code, printed = run_sync(collection, folder, "--delete")
    assert (code, "--dry-run lists them. If this is intended: --allow-deletions." in printed) == (
        2,
        True,
    )
    dry = ("--delete", "--dry-run")
    _, printed = run_sync(collection, folder, *dry, "--allow-deletions", "--json")
    assert json.loads(printed)["refused"] is None
    _, printed = run_sync(collection, folder, *dry, "--force")
    assert "--force is called --allow-deletions now." in printed
    assert "refused" not in printed
    assert len(names(collection, folder)) == 15
    for file in files[:2]:
        write(file, "It came back.")
    ten = sync(collection, folder, delete=True, dry_run=True)
    assert (len(ten.deleted), ten.refused) == (10, None)
    for file in files[:2]:
        file.unlink()
    assert len(sync(collection, folder, delete=True, allow_deletions=True).deleted) == 12
    assert names(collection, folder) == ALL


def test_a_dry_run_creates_neither_collection_nor_workspace(folder: Path) -> None:
    (folder / "broken.txt").symlink_to(folder / "nowhere")
    arguments = ("--collection", "notess", "--workspace", "typo", "--dry-run")
    code, printed = run_command("sync", str(folder), *arguments)
    assert code == 1
    assert "new: one.txt\n" in printed
    assert "3 new, 0 modified, 0 unchanged, 0 renamed, 0 deleted, 1 failed" in printed
    assert "Without --dry-run the collection “notess” is created.\n" in printed
    for model in (Workspace, Collection, Document, IngestionRun, Change):
        assert not model._default_manager.exists()
    code, printed = run_command("sync", str(folder), "--collection", "No Slug", "--dry-run")
    assert (code, "lower-case letters" in printed) == (2, True)


def test_two_syncs_of_one_directory_at_once_are_one(collection: Collection, folder: Path) -> None:
    key = f"sync {folder.resolve()}"
    statement = "SELECT pg_advisory_lock(hashtextextended(%s, %s))"
    parameters = connection.get_connection_params()
    known = {
        name: parameters[name]
        for name in ("dbname", "user", "host", "port", "password")
        if parameters.get(name)
    }
    with psycopg.connect(**known) as other:
        other.execute(statement, [key, collection.pk])
        with pytest.raises(Conflict, match="is syncing"):
            sync(collection, folder)
        assert len(sync(CollectionFactory(), folder).new) == 3  # another collection may
        other.execute("SELECT pg_advisory_unlock_all()")
    assert len(sync(collection, folder).new) == 3


def test_what_the_workers_are_to_ingest_is_queued(collection: Collection, folder: Path) -> None:
    result = sync(collection, folder, queue=True)
    assert set(result.new) == ALL
    assert set(Document.objects.values_list("status", flat=True)) == {"queued"}
    assert result.run is not None
    assert (result.run.total, result.run.state) == (3, "running")


def test_the_command_names_and_counts(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "two.txt").unlink()
    (folder / "one.txt").rename(folder / "first.txt")
    advice = "--delete removes them"
    assert advice in run_sync(collection, folder, "--dry-run")[1]
    assert advice not in run_sync(collection, folder, "--dry-run", "--delete")[1]
    code, printed = run_sync(collection, folder, "--delete")
    assert code == 0
    assert "deleted: two.txt\nrenamed: one.txt -> first.txt\n" in printed
    assert "0 new, 0 modified, 1 unchanged, 1 renamed, 1 deleted, 0 failed, 0 retried" in printed
