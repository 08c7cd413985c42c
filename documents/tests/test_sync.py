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


def names(collection: Collection, folder: Path) -> set[str]:
    keys = Document.objects.filter(collection=collection).values_list("key", flat=True)
    return {str(Path(key).relative_to(folder.resolve())) for key in keys}


def chunk_ids(collection: Collection) -> set[int]:
    return set(Chunk.objects.filter(collection=collection).values_list("id", flat=True))


ALL = {"one.txt", "two.txt", "deep/three.md"}


def test_the_first_sync_brings_everything_and_the_second_nothing(
    collection: Collection, folder: Path
) -> None:
    first = sync(collection, folder)
    assert (set(first.new), first.modified, first.unchanged, first.deleted) == (ALL, (), (), ())
    assert names(collection, folder) == ALL
    before = chunk_ids(collection)
    second = sync(collection, folder)
    assert (second.new, set(second.unchanged)) == ((), ALL)
    assert chunk_ids(collection) == before


def test_each_kind_of_change_is_named(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    write(folder / "new.txt", "This one was not here before.")
    write(folder / "one.txt", "This one says something else now.")
    (folder / "two.txt").unlink()
    result = sync(collection, folder)
    assert (result.new, result.modified, result.unchanged, result.deleted) == (
        ("new.txt",),
        ("one.txt",),
        ("deep/three.md",),
        ("two.txt",),
    )
    assert not result.deletions_applied
    assert names(collection, folder) == ALL | {"new.txt"}


def test_documents_go_only_when_that_is_asked_for(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "two.txt").unlink()
    result = sync(collection, folder, delete=True)
    assert (result.deleted, result.deletions_applied) == (("two.txt",), True)
    assert names(collection, folder) == ALL - {"two.txt"}
    assert validate().is_clean


def test_a_dry_run_changes_nothing(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "two.txt").rename(folder / "renamed.txt")
    (folder / "one.txt").unlink()
    write(folder / "new.txt", "This one was not here before.")
    result = sync(collection, folder, delete=True, dry_run=True)
    assert (result.new, result.renamed, result.deleted) == (
        ("new.txt",),
        (("two.txt", "renamed.txt"),),
        ("one.txt",),
    )
    assert result.run is None
    assert names(collection, folder) == ALL


def test_a_file_that_failed_is_retried_and_not_modified(
    collection: Collection, folder: Path
) -> None:
    write(folder / "bad.pdf", "%PDF-1.7 cut off")
    sync(collection, folder)
    result = sync(collection, folder, dry_run=True)
    assert (result.retried, result.modified, result.failed) == (("bad.pdf",), (), ())
    assert "ends too early" in result.reasons["bad.pdf"]

    _, said = run_command("sync", str(folder), *notes_of(collection), "--dry-run")
    assert f"failed, to be tried again: bad.pdf: {result.reasons['bad.pdf']}\n" in said
    assert sync(collection, folder).run.failed == 1  # type: ignore[union-attr]

    (folder / "one.txt").write_bytes(b"\0\1\2" * 100)
    sync(collection, folder)
    assert set(sync(collection, folder, dry_run=True).retried) == {"bad.pdf", "one.txt"}
    write(folder / "one.txt", "This one can be read again.")
    assert sync(collection, folder, dry_run=True).modified == ("one.txt",)


def test_a_renamed_file_keeps_its_chunks(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    before = chunk_ids(collection)
    (folder / "one.txt").rename(folder / "deep" / "first.txt")
    result = sync(collection, folder, delete=True)
    assert (result.renamed, result.new, result.deleted) == (
        (("one.txt", "deep/first.txt"),),
        (),
        (),
    )
    moved = Document.objects.get(key=str(folder.resolve() / "deep" / "first.txt"))
    assert (moved.source, moved.title) == ("deep/first.txt", "First")
    assert chunk_ids(collection) == before
    assert result.run is not None
    assert result.run.embedded == 0
    assert set(sync(collection, folder).unchanged) == {"deep/first.txt", "deep/three.md", "two.txt"}


def test_a_copy_is_no_rename(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    write(folder / "copy.txt", (folder / "one.txt").read_text())
    result = sync(collection, folder, delete=True)
    assert (result.new, result.renamed, result.deleted) == (("copy.txt",), (), ())


def test_the_same_bytes_under_another_suffix_are_read_anew(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)
    (folder / "one.txt").rename(folder / "one.md")
    result = sync(collection, folder, delete=True)
    assert (result.new, result.renamed, result.deleted) == (("one.md",), (), ("one.txt",))


def test_a_renamed_directory_is_as_many_renames(collection: Collection, folder: Path) -> None:
    for number in range(15):
        write(folder / "deep" / f"{number}.txt", f"Number {number} of the files.")
    sync(collection, folder)
    (folder / "deep").rename(folder / "elsewhere")
    result = sync(collection, folder, delete=True)
    assert len(result.renamed) == 16
    assert (result.new, result.deleted) == ((), ())


def test_only_documents_below_the_directory_are_compared(
    collection: Collection, folder: Path, tmp_path: Path
) -> None:
    for other in ("folder-2", "folderXd", "other"):
        write(tmp_path / other / "kept.txt", f"This is of {other}.")
        sync(collection, tmp_path / other)
        (tmp_path / other / "kept.txt").unlink()
    DocumentFactory(collection=collection, key="uploaded.txt")
    sync(collection, folder)
    assert sync(collection, folder, delete=True).deleted == ()


def test_percent_and_underscore_in_a_name_are_letters(
    collection: Collection, tmp_path: Path
) -> None:
    write(tmp_path / "a_b%" / "one.txt", "Of the one directory.")
    write(tmp_path / "axbyy" / "two.txt", "Of the other directory.")
    sync(collection, tmp_path / "a_b%")
    sync(collection, tmp_path / "axbyy")
    (tmp_path / "axbyy" / "two.txt").unlink()
    assert sync(collection, tmp_path / "a_b%", delete=True).deleted == ()


def test_a_glob_narrows_both_sides(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "one.txt").unlink()
    (folder / "deep" / "three.md").unlink()
    write(folder / "four.md", "This is Markdown.")
    result = sync(collection, folder, glob="**/*.md", delete=True)
    assert (result.new, result.deleted) == (("four.md",), ("deep/three.md",))
    assert names(collection, folder) == {"one.txt", "two.txt", "four.md"}


def test_what_a_program_gave_under_such_an_id_is_not_of_the_directory(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)
    key = str(folder.resolve() / "note")
    services.ingest_text(collection=collection, key=key, text="Given by a program.")
    assert sync(collection, folder, delete=True).deleted == ()


def chunk_json(number: int, text: str) -> str:
    record = {
        "chunk_id": f"leaflet_chunk_{number:03}",
        "source_document": "leaflet",
        "chunk_text": text,
        "original_text": text,
        "token_count": 8,
        "metadata": {},
    }
    return json.dumps(record)


def test_a_bundle_of_chunk_files_is_one_document(collection: Collection, folder: Path) -> None:
    for number in range(3):
        path = folder / "leaflets" / f"leaflet_chunk_{number:03}.json"
        write(path, chunk_json(number, f"Passage number {number} of the leaflet."))
    sync(collection, folder)
    assert "leaflets/leaflet" in names(collection, folder)
    path.unlink()
    assert sync(collection, folder, delete=True).modified == ("leaflet.chunks.jsonl",)
    for file in (folder / "leaflets").iterdir():
        file.unlink()
    assert sync(collection, folder, delete=True).deleted == ("leaflets/leaflet",)
    assert names(collection, folder) == ALL


def test_a_bundle_whose_files_cannot_be_read_is_not_deleted(
    collection: Collection, folder: Path
) -> None:
    path = folder / "leaflets" / "leaflet_chunk_000.json"
    write(path, chunk_json(0, "The only passage of the leaflet."))
    sync(collection, folder)
    write(path, '{"chunk_id": "cut off')
    result = sync(collection, folder, delete=True)
    assert (result.deleted, len(result.failed)) == ((), 1)
    assert "leaflets/leaflet" in names(collection, folder)


def test_a_file_that_is_there_and_cannot_be_read_is_not_deleted(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)
    (folder / "one.txt").unlink()
    (folder / "one.txt").symlink_to(folder / "nowhere")
    result = sync(collection, folder, delete=True)
    assert (result.deleted, result.failed) == ((), ("one.txt",))


@pytest.mark.parametrize("state", ["missing", "a file", "empty"])
def test_a_directory_that_is_suddenly_not_there_deletes_nothing(
    collection: Collection, folder: Path, state: str
) -> None:
    sync(collection, folder)
    folder.rename(folder.with_name("unmounted"))
    if state == "a file":
        folder.write_text("no directory")
    elif state == "empty":
        folder.mkdir()
    with pytest.raises(InvalidInput, match="Nothing was changed"):
        sync(collection, folder, delete=True, allow_deletions=True)
    assert Document.objects.filter(collection=collection).count() == 3


def test_an_empty_directory_counts_when_that_is_said(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    assert len(sync(collection, folder, delete=True, allow_empty=True).deleted) == 3
    assert not Document.objects.filter(collection=collection).exists()


def test_more_than_half_go_only_by_force(collection: Collection, folder: Path) -> None:
    for number in range(12):
        write(folder / f"{number}.txt", f"Number {number} of the files.")
    sync(collection, folder)
    for number in range(12):
        (folder / f"{number}.txt").unlink()
    with pytest.raises(InvalidInput, match="12 of 15 documents would be deleted"):
        sync(collection, folder, delete=True)
    assert len(names(collection, folder)) == 15
    assert len(sync(collection, folder, delete=True, allow_deletions=True).deleted) == 12
    assert names(collection, folder) == ALL


def test_a_dry_run_shows_many_deletions_and_says_that_they_are_refused(
    collection: Collection, folder: Path
) -> None:
    for number in range(12):
        write(folder / f"{number}.txt", f"Number {number} of the files.")
    sync(collection, folder)
    for number in range(12):
        (folder / f"{number}.txt").unlink()
    arguments = ("sync", str(folder), *notes_of(collection), "--delete")
    code, printed = run_command(*arguments, "--dry-run")
    assert (code, printed.count("deleted: ")) == (0, 12)
    assert (
        "Nothing was changed: this was a dry run.\n"
        "Without --dry-run this is refused: 12 of 15 documents would be deleted, more than half."
        " If this is intended: --allow-deletions.\n"
    ) in printed
    code, printed = run_command(*arguments)
    assert (code, "--dry-run lists them. If this is intended: --allow-deletions." in printed) == (
        2,
        True,
    )
    _, printed = run_command(*arguments, "--dry-run", "--allow-deletions", "--json")
    assert json.loads(printed)["refused"] is None
    _, printed = run_command(*arguments, "--dry-run", "--force")
    assert "--force is called --allow-deletions now." in printed
    assert "refused" not in printed
    assert len(names(collection, folder)) == 15


def test_a_dry_run_shows_the_deletions_of_an_empty_directory(
    collection: Collection, folder: Path
) -> None:
    sync(collection, folder)
    folder.rename(folder.with_name("unmounted"))
    folder.mkdir()
    arguments = ("sync", str(folder), *notes_of(collection), "--delete", "--dry-run")
    code, printed = run_command(*arguments)
    assert (code, printed.count("deleted: ")) == (0, 3)
    assert "If this is intended: --allow-empty." in printed
    _, printed = run_command(*arguments, "--json")
    assert json.loads(printed)["refused"]["option"] == "allow_empty"


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


def test_a_dry_run_advises_no_option_that_was_given(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "one.txt").unlink()
    advice = "--delete removes them"
    arguments = ("sync", str(folder), *notes_of(collection), "--dry-run")
    assert advice in run_command(*arguments)[1]
    assert advice not in run_command(*arguments, "--delete")[1]


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


def notes_of(collection: Collection) -> tuple[str, ...]:
    return ("--collection", "notes", "--workspace", collection.workspace.slug)


def test_the_command_names_and_counts(collection: Collection, folder: Path) -> None:
    sync(collection, folder)
    (folder / "two.txt").unlink()
    (folder / "one.txt").rename(folder / "first.txt")
    code, said = run_command("sync", str(folder), *notes_of(collection), "--delete")
    assert code == 0
    assert "deleted: two.txt\nrenamed: one.txt -> first.txt\n" in said
    assert "0 new, 0 modified, 1 unchanged, 1 renamed, 1 deleted, 0 failed, 0 retried" in said


def test_a_program_reads_every_name(collection: Collection, folder: Path) -> None:
    write(folder / "bad.pdf", "%PDF-1.7 cut off")
    code, said = run_command("sync", str(folder), *notes_of(collection), "--json")
    report = json.loads(said)
    assert code == 1
    assert set(report["new"]) == ALL | {"bad.pdf"}
    assert report["counts"]["new"] == 4
    assert [failure["name"] for failure in report["run"]["failures"]] == ["bad.pdf"]


def test_a_directory_that_is_not_there_ends_with_2(collection: Collection) -> None:
    code, said = run_command("sync", "/nowhere/at/all", "--collection", "notes")
    assert (code, "not a directory" in said) == (2, True)
