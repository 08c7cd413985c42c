"""Files that are sent."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from documents.models import Collection, Document, IngestionRun
from documents.tests.views.reading import parse

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


def upload(client: Client, *files: tuple[str, bytes], **fields: Any) -> Any:
    sent = [SimpleUploadedFile(name, data) for name, data in files]
    return client.post("/documents/notes/upload/", {"files": sent, **fields})


def test_uploaded_files_become_a_run_to_watch(client: Client, notes: Collection) -> None:
    answer = upload(client, ("a.txt", b"one"), ("b.md", b"# two"))

    run = IngestionRun.objects.get()
    assert answer.url == f"/runs/{run.pk}/"
    assert (run.collection, run.total) == (notes, 2)
    assert run.user is not None
    assert sorted(run.items.values_list("name", flat=True)) == ["a.txt", "b.md"]
    assert {document.status for document in Document.objects.all()} == {"queued"}


def test_the_folders_of_a_file_are_kept_in_its_key(client: Client, notes: Collection) -> None:
    paths = ["law/2024/a.txt", "law/2025/a.txt"]
    upload(client, ("a.txt", b"one"), ("a.txt", b"two"), paths=json.dumps(paths))

    assert sorted(Document.objects.values_list("key", flat=True)) == paths


@pytest.mark.parametrize("sent", ["not json", "{}", '["one"]', "[1, 2, 3]", "null", ""])
def test_paths_that_do_not_fit_the_files_are_left_out(
    client: Client, notes: Collection, sent: str
) -> None:
    upload(client, ("a.txt", b"one"), ("b.txt", b"two"), paths=sent)

    assert sorted(Document.objects.values_list("key", flat=True)) == ["a.txt", "b.txt"]


def test_a_name_decides_nothing_about_where_a_file_is_stored(
    client: Client, notes: Collection, media_root: Any
) -> None:
    upload(client, ("a.txt", b"one"), paths=json.dumps(["../../../../etc/passwd\x00"]))

    document = Document.objects.get()
    stored = media_root / document.file.name
    assert stored.read_bytes() == b"one"
    assert stored.resolve().is_relative_to(media_root)
    assert "passwd" not in document.file.name


def test_unchanged_files_are_skipped_unless_asked_for_again(
    client: Client, notes: Collection
) -> None:
    upload(client, ("a.txt", b"one"))
    upload(client, ("a.txt", b"one"), again="on")

    policies = IngestionRun.objects.order_by("id").values_list("policy", flat=True)
    assert list(policies) == ["skip_if_unchanged", "overwrite"]


def test_nothing_sent_is_said(client: Client, notes: Collection) -> None:
    answer = upload(client)

    assert answer.status_code == 400
    assert "Choose at least one" in parse(answer).get_element_by_id("upload-errors").text_content()


def test_a_file_that_is_too_large_is_named_and_nothing_is_stored(
    client: Client, notes: Collection, settings: Any
) -> None:
    settings.MAX_UPLOAD_BYTES = 10
    answer = upload(client, ("small.txt", b"one"), ("large.txt", b"x" * 11))

    assert answer.status_code == 400
    assert "large.txt (11\xa0bytes)" in answer.text
    assert "small.txt" not in parse(answer).get_element_by_id("upload-errors").text_content()
    assert not IngestionRun.objects.exists()


def test_too_many_files_are_refused_with_the_limit(
    client: Client, notes: Collection, settings: Any
) -> None:
    settings.MAX_UPLOAD_FILES = settings.DATA_UPLOAD_MAX_NUMBER_FILES = 2
    answer = upload(client, *[(f"{number}.txt", b"x") for number in range(3)])

    assert answer.status_code == 400
    assert "more than 2 files" in answer.text
    assert not IngestionRun.objects.exists()


def test_an_empty_file_is_no_reason_to_refuse_the_others(client: Client, notes: Collection) -> None:
    upload(client, ("empty.txt", b""), ("a.txt", b"one"))

    assert IngestionRun.objects.get().total == 2
