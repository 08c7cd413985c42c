"""Files of chunk records, known by their fields, are the documents that the records name."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from documents import services
from documents.ingestion.sources import BrokenSource, Source, discover
from documents.models import Chunk, Collection, Document
from documents.services import (
    Upload,
    ingest_inline,
    ingest_uploads,
    keep_source_documents,
    sync_directory,
)
from documents.tests.commands import run_command
from documents.tests.factories import CollectionFactory
from reading.parsers import CHUNK_JSON, parse
from reading.parsers.chunk_json import chunk_layout, parse_bundle
from reading.tests.factories_files import chunk_fields


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


FLAT = {
    "text": "Take one tablet a day with water.",
    "chapter_title": "Leaflet",
    "section_title": "3. How to take it",
    "subsection_title": ["Adults"],
    "summary": "The dose.",
    "token_count": 8,
}
ORDINARY = {"title": "One", "text": "An article of ten words or so."}


@pytest.mark.parametrize(
    ("name", "data", "layout"),
    [
        ("leaflet.json", json.dumps(FLAT, indent=1).encode(), "object"),
        ("leaflet", b"\xef\xbb\xbf\n" + json.dumps(FLAT).encode(), "object"),
        ("leaflet.json", json.dumps([ORDINARY, FLAT]).encode(), "array"),
        ("leaflet.txt", json.dumps([FLAT] * 30, indent=1).encode(), "array"),
        ("leaflet.jsonl", json.dumps([FLAT]).encode(), "array"),
        ("leaflet.dat", lines(FLAT, FLAT), "lines"),
        ("leaflet.json", b"[" + json.dumps(FLAT).replace("tab", "tab\0").encode() + b"]", "array"),
        ("leaflet.jsonl", lines("torn", FLAT), "lines"),
        ("a_chunk_1.json", lines(FLAT, FLAT), "lines"),
        ("a_chunk_1.json", b"{", "object"),
        ("a.json", json.dumps(chunk_fields(1)).encode(), "object"),
        ("a.json", json.dumps({"page_content": "x", "metadata": FLAT}).encode(), "object"),
        ("a_chunk_1.json", json.dumps([ORDINARY]).encode(), None),
        ("a.json", json.dumps([ORDINARY, ORDINARY | {"chapter_title": "X"}]).encode(), None),
        ("a.json", json.dumps([ORDINARY | {"summary": "X", "token_count": 9}]).encode(), None),
        ("a.json", json.dumps({"chapters": [FLAT]}).encode(), None),
        ("a.json", json.dumps({**FLAT, "text": None, "x": "chunk_id"})[:-9].encode(), None),
        ("a.json", b"[]", None),
        ("a.json", b"[" * 100_000 + b'"chapter_title"', None),
        ("a.jsonl", lines(ORDINARY), None),
        ("a.jsonl", b"no JSON\n" * 20, None),
        ("a.jsonl", b"", None),
        ("a.md", b'Of "chapter_title"\n' + lines(FLAT), None),
    ],
)
def test_a_file_of_chunks_is_known_by_its_fields(
    tmp_path: Path, name: str, data: bytes, layout: str | None
) -> None:
    (tmp_path / name).write_bytes(data)
    assert chunk_layout(name, lambda: (tmp_path / name).open("rb")) == layout
    entries = list(discover([tmp_path]))
    is_ordinary = [(entry.name, getattr(entry, "path", None)) for entry in entries] == [
        (name, tmp_path / name)
    ]
    assert is_ordinary is (layout is None)


def test_records_of_an_array_are_read_apart_and_named_by_their_number(tmp_path: Path) -> None:
    tricky = FLAT | {"text": 'Brackets ]}, "quotes" and \\ are text: ' + "\\" * 70_001}
    records = [
        FLAT,
        {**FLAT, "text": None},
        tricky,
        FLAT | {"subsection_title": "Adults"},
        ORDINARY,
    ]
    (tmp_path / "leaflet.json").write_bytes(json.dumps(records, indent=2).encode())
    entries = found(tmp_path)
    broken = {name: entry for name, entry in entries.items() if isinstance(entry, BrokenSource)}
    assert set(broken) == {"leaflet.json:2"}
    assert "chunk_text is missing" in broken["leaflet.json:2"].reason
    bundle = entries["leaflet.json.chunks.jsonl"]
    assert isinstance(bundle, Source)
    assert bundle.key == f"{tmp_path}/leaflet.json"
    document = parse_bundle(bundle.read(), name=bundle.name)
    assert document.title == "Leaflet"
    assert [chunk.key for chunk in document.chunks] == [
        f"leaflet.json_chunk_{number:03}" for number in (1, 3, 4, 5)
    ]
    assert [chunk.text for chunk in document.chunks[:2]] == [FLAT["text"], tricky["text"]]
    assert {chunk.heading_path for chunk in document.chunks[:3]} == {
        ("Leaflet", "3. How to take it", "Adults")
    }


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        (b', {"text": "cut o', "truncated", "ends too early, in record 3"),
        (b"] and more", "malformed", "follows the array"),
        (b', {"text": "a \x00 character"}]', "malformed", "control character"),
    ],
)
def test_an_array_that_is_broken_gives_the_records_before(
    tmp_path: Path, end: bytes, code: str, message: str
) -> None:
    two = json.dumps([FLAT, FLAT]).encode()
    (tmp_path / "leaflet.json").write_bytes(two[:-1] + end)
    *broken, bundle = discover([tmp_path])
    assert isinstance(bundle, Source)
    assert len(bundle.read().splitlines()) == 2
    (failure,) = broken
    assert isinstance(failure, BrokenSource)
    assert failure.code == code
    assert message in failure.reason


def test_of_two_records_with_one_id_the_first_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(json.dumps([chunk_fields(1), chunk_fields(2)]).encode())
    (tmp_path / "b.jsonl").write_bytes(lines(chunk_fields(1), chunk_fields(3)))
    entries = found(tmp_path)
    twin, bundle = entries["b.jsonl:1"], entries["examplol_leaflet.chunks.jsonl"]
    assert isinstance(twin, BrokenSource)
    assert "The id 07_examplol_chunk_001 is also in a.json:1" in twin.reason
    assert isinstance(bundle, Source)
    assert len(bundle.read().splitlines()) == 3


def test_ids_that_are_missing_come_from_the_file_and_the_chunk_id(tmp_path: Path) -> None:
    (tmp_path / "07_x_chunk_002.json").write_bytes(json.dumps(FLAT).encode())
    (tmp_path / "more.json").write_bytes(
        json.dumps([FLAT | {"chunk_id": "07_x_chunk_001"}, FLAT | {"chunk_id": "b"}]).encode()
    )
    entries = [entry for entry in discover([tmp_path]) if isinstance(entry, Source)]
    ids = {
        entry.key.removeprefix(f"{tmp_path}/"): [
            json.loads(line)["chunk_id"] for line in entry.read().splitlines()
        ]
        for entry in entries
    }
    assert ids == {"07_x": ["07_x_chunk_001", "07_x_chunk_002"], "more.json": ["b"]}


def test_an_array_fetched_or_given_by_name_is_one_document() -> None:
    document = parse(json.dumps([FLAT, FLAT]).encode(), name="leaflet.json")
    assert (document.media_type, len(document.chunks)) == (CHUNK_JSON, 2)
    assert parse(json.dumps([ORDINARY]).encode(), name="a_chunk_1.json").chunks == ()


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

    def test_records_from_another_folder_replace_their_document(
        self, collection: Collection, tmp_path: Path
    ) -> None:
        def ingest(name: str, text: str) -> None:
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            (folder / "all.jsonl").write_text(text)
            run_command("ingest", str(folder), *where)

        workspace = collection.workspace.slug
        where = ("--collection", collection.slug, "--workspace", workspace)
        ingest("first", TWO_DOCUMENTS.decode())
        keys = set(Document.objects.values_list("key", flat=True))
        ingest("second", TWO_DOCUMENTS.decode().replace("passage number 1", "passage number one"))
        assert set(Document.objects.values_list("key", flat=True)) == keys
        assert len(keys) == 2
        assert Chunk.objects.filter(text__contains="number one").exists()
        assert not Chunk.objects.filter(text__contains="number 1 ").exists()

    def test_where_several_have_that_source_a_further_folder_is_another(
        self, collection: Collection, tmp_path: Path
    ) -> None:
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "all.jsonl").write_bytes(TWO_DOCUMENTS)
        # in one run each folder has its own
        ingest_inline(collection=collection, sources=discover([tmp_path / "a", tmp_path / "b"]))
        assert Document.objects.count() == 4
        entries = keep_source_documents(collection, discover([tmp_path / "c"]))
        assert {entry.key.split("/")[-2] for entry in entries} == {"c"}
        entries = keep_source_documents(collection, discover([tmp_path / "b"]))
        assert {entry.key.split("/")[-2] for entry in entries} == {"b"}

    @pytest.mark.parametrize("is_array", [False, True])
    def test_an_upload_gives_the_same(self, collection: Collection, is_array: bool) -> None:
        records = [json.loads(line) for line in TWO_DOCUMENTS.splitlines() if line]
        data = json.dumps(records).encode() if is_array else TWO_DOCUMENTS
        upload = Upload(name="all", file=SimpleUploadedFile("all", data))
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
