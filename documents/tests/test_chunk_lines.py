"""JSON Lines of chunk records are the documents that the records name."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from documents import services
from documents.ingestion.chunk_lines import holds_chunks
from documents.ingestion.sources import BrokenSource, Source, discover
from documents.models import Chunk, Collection, Document
from documents.services import Upload, ingest_inline, ingest_uploads, sync_directory
from documents.tests.factories import CollectionFactory
from documents.tests.factories_files import chunk_fields


def lines(*records: dict[str, Any] | str) -> bytes:
    written = (each if isinstance(each, str) else json.dumps(each) for each in records)
    return "\n".join(written).encode()


TWO_DOCUMENTS = lines(
    chunk_fields(2),
    "",
    chunk_fields(1),
    chunk_fields(3, source_document="another", chunk_id="another_chunk_001"),
)


def found(folder: Path) -> dict[str, Source | BrokenSource]:
    return {entry.name: entry for entry in discover([folder])}


def test_each_source_document_is_one_with_its_chunks_in_order(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_bytes(b"\xef\xbb\xbf" + TWO_DOCUMENTS)
    entries = found(tmp_path)
    assert set(entries) == {"examplol_leaflet.chunks.jsonl", "another.chunks.jsonl"}
    leaflet = entries["examplol_leaflet.chunks.jsonl"]
    assert isinstance(leaflet, Source)
    assert leaflet.key == f"{tmp_path}/examplol_leaflet"
    ids = [json.loads(line)["chunk_id"] for line in leaflet.read().splitlines()]
    assert ids == ["07_examplol_chunk_001", "07_examplol_chunk_002"]


def test_records_of_one_document_may_lie_in_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(chunk_fields(1)))
    (tmp_path / "b.NDJSON").write_bytes(lines(chunk_fields(2)))
    (tmp_path / "x_chunk_3.json").write_bytes(lines(chunk_fields(3)))
    (entry,) = discover([tmp_path])
    assert isinstance(entry, Source)
    assert len(entry.read().splitlines()) == 3


def test_a_broken_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    torn = json.dumps(chunk_fields(2))[:-5]
    (tmp_path / "a.jsonl").write_bytes(
        lines(torn, chunk_fields(1), chunk_fields(3, token_count=-1))
    )
    entries = found(tmp_path)
    broken = {name for name, entry in entries.items() if isinstance(entry, BrokenSource)}
    assert broken == {"a.jsonl:1", "a.jsonl:3"}
    assert isinstance(entries["examplol_leaflet.chunks.jsonl"], Source)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", lines({"title": "One", "text": "No chunk."})),
        ("a.jsonl", b"no JSON\n" * 20),
        ("a.jsonl", b"[" * 100_000),
        ("a.jsonl", b""),
        ("a.json", lines(chunk_fields(1))),
        ("a.txt", lines(chunk_fields(1))),
    ],
)
def test_other_files_are_no_chunks(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert not holds_chunks(name, lambda: (tmp_path / name).open("rb"))
    (entry,) = discover([tmp_path])
    assert isinstance(entry, Source)
    assert (entry.name, entry.path) == (name, tmp_path / name)


def test_a_file_that_cannot_be_opened_holds_none(tmp_path: Path) -> None:
    assert not holds_chunks("a.jsonl", lambda: (tmp_path / "a.jsonl").open("rb"))


@pytest.mark.django_db
class TestIngested:
    @pytest.fixture
    def collection(self, media_root: Path) -> Collection:
        return CollectionFactory()

    def test_a_folder_gives_documents_with_the_authors_chunks(
        self, collection: Collection, tmp_path: Path
    ) -> None:
        (tmp_path / "all.jsonl").write_bytes(TWO_DOCUMENTS)
        run = ingest_inline(collection=collection, sources=discover([tmp_path]))
        assert (run.ready, run.failed) == (2, 0)
        leaflet = Document.objects.get(key=f"{tmp_path}/examplol_leaflet")
        texts = Chunk.objects.filter(document=leaflet).order_by("ordinal").values_list("text")
        assert [text for (text,) in texts] == [
            "This is passage number 1 of the leaflet.",
            "This is passage number 2 of the leaflet.",
        ]
        again = ingest_inline(collection=collection, sources=discover([tmp_path]))
        assert (again.ready, again.skipped) == (0, 2)

    def test_an_upload_gives_the_same(self, collection: Collection) -> None:
        upload = Upload(name="all.jsonl", file=SimpleUploadedFile("all.jsonl", TWO_DOCUMENTS))
        run = ingest_uploads(collection=collection, uploads=[upload])
        assert (run.total, run.failed) == (2, 0)
        keys = set(Document.objects.values_list("key", flat=True))
        assert keys == {"examplol_leaflet", "another"}

    def test_a_broken_line_keeps_what_may_have_been_of_it(
        self, collection: Collection, tmp_path: Path
    ) -> None:
        file = tmp_path / "all.jsonl"
        file.write_bytes(TWO_DOCUMENTS)
        sync_directory(collection=collection, directory=tmp_path)
        torn = json.dumps(chunk_fields(3, source_document="another"))[:-5]
        file.write_bytes(lines(chunk_fields(1), torn))
        result = sync_directory(collection=collection, directory=tmp_path, delete=True)
        assert not result.deleted
        assert services.chunk_count(collection=collection) == 2
