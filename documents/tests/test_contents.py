"""Files are found, measured and read: each once, none too large, and what is no file is named.
Stages work ahead of their callers."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db.models.fields.files import FieldFile
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.ingestion import preparation
from documents.ingestion.concurrency import prefetch
from documents.ingestion.preparation import (
    PreparedChunk,
    PreparedDocument,
    pack_document,
    unpack_document,
)
from documents.ingestion.sources import (
    MAX_IN_MEMORY,
    BrokenSource,
    Content,
    SkippedFile,
    Source,
    content_from_bytes,
    content_from_file,
    content_from_storage,
    discover,
    read_content,
    split_batches,
    split_segments,
    text_source,
    walk,
)
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.services import ingest_inline, ingest_sources
from documents.tests.factories import CollectionFactory
from documents.tests.factories_folder import handbook
from reading.parsers import ParseError
from reading.parsers.chunk_json import MAX_RECORD_BYTES
from reading.tests.factories_files import chunk_json

LIMIT = 100 * 1024 * 1024


def refused(path: Path, *, max_bytes: int = LIMIT) -> str:
    with pytest.raises(ParseError) as caught:
        content_from_file(path, name=path.name, max_bytes=max_bytes)
    return caught.value.code


def found(*paths: Path, **options: Any) -> dict[str, Source | BrokenSource]:
    return {entry.name: entry for entry in discover(paths, **options)}


# --- reading -------------------------------------------------------------------------------------


def test_a_small_file_is_read_once_and_a_large_one_left_where_it_is(tmp_path: Path) -> None:
    for size in (0, 10, MAX_IN_MEMORY, MAX_IN_MEMORY + 1, 3 * MAX_IN_MEMORY + 5):
        data = os.urandom(size)
        path = tmp_path / "file"
        path.write_bytes(data)
        content = content_from_file(path, name="file", max_bytes=LIMIT)
        is_small = size <= MAX_IN_MEMORY
        assert content == Content(
            size=size,
            sha256=hashlib.sha256(data).hexdigest(),
            data=data if is_small else None,
            path=None if is_small else path,
        )
        with content.open() as file:
            assert file.read() == data


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte would take longer than anybody waits
    assert refused(path) == "too_large"


def test_a_file_that_has_more_than_it_said_is_read_no_further_than_the_limit() -> None:
    maps = Path("/proc/self/maps")  # its size is said to be 0
    if not maps.exists():
        pytest.skip("the kernel has no such file")
    assert content_from_file(maps, name="maps", max_bytes=LIMIT).size > 1000
    assert refused(maps, max_bytes=1000) == "too_large"


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe") == "unsupported"


def test_a_source_without_a_file_has_its_limit_too() -> None:
    source = text_source("note", "word " * 100)
    assert read_content(source, max_bytes=500) == content_from_bytes(
        b"word " * 100, is_given_text=True
    )
    with pytest.raises(ParseError, match="RAGSITE_MAX_UPLOAD_BYTES"):
        read_content(source, max_bytes=499)
    boastful = Source("key", "name", 10, lambda: b"more than it says")
    with pytest.raises(ParseError, match="17 bytes"):
        read_content(boastful, max_bytes=12)


def test_a_source_whose_file_is_gone_is_unreadable(tmp_path: Path) -> None:
    source = Source("key", "gone.txt", 10, lambda: b"", path=tmp_path / "gone.txt")
    with pytest.raises(ParseError) as caught:
        read_content(source, max_bytes=LIMIT)
    assert caught.value.code == "unreadable"
    assert "gone.txt" in caught.value.message


class _Elsewhere(Storage):
    """Like a storage over the network: it has no paths."""

    def _open(self, name: str, mode: str = "rb") -> Any:
        return ContentFile(b"Stored elsewhere.", name)

    def size(self, name: str) -> int:
        return len(b"Stored elsewhere.")


def test_an_upload_that_lies_in_no_file_system_of_ours_is_read_from_its_storage() -> None:
    file = FieldFile(Document(), Document._meta.get_field("file"), "upload")
    file.storage = _Elsewhere()
    assert content_from_storage(file, name="upload", max_bytes=20).data == b"Stored elsewhere."
    with pytest.raises(ParseError, match="17 bytes"):
        content_from_storage(file, name="upload", max_bytes=16)


# --- finding -------------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a.md", "b.txt", "c", "d.md", ".hidden", "sub", "deep"])
_PATHS = st.lists(st.lists(_NAMES, min_size=1, max_size=3), max_size=8)
_GLOBS = st.lists(st.sampled_from(["**", "*", "*.md", "?.txt", "sub", "[ab]*"]), max_size=3).map(
    lambda parts: "/".join([*parts, "*"])
)


@settings(max_examples=100, deadline=None)
@given(_PATHS, _GLOBS)
def test_a_pattern_finds_what_pathlib_finds(paths: list[list[str]], glob: str) -> None:
    with TemporaryDirectory() as place:
        root = Path(place)
        for parts in paths:
            path = root.joinpath(*parts)
            if not any(above.is_file() for above in path.parents) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("text")
        shown = {
            path
            for path in root.glob(glob)
            if path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(root).parts)
        }
        groups = list(walk(root, glob))
        assert {path for group in groups for path in group} == shown
        assert all(group == sorted(group) for group in groups)
        assert len({path.parent for group in groups for path in group}) == len(groups)


def test_links_to_directories_are_not_followed_and_links_to_files_are(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "note.txt").write_text("text")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link.txt").symlink_to("real/note.txt")
    assert list(found(tmp_path)) == ["link.txt", "real/note.txt"]


def test_what_is_no_file_is_named_with_its_cure(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    entries = found(tmp_path) | found(tmp_path / "pipe")
    assert {name: getattr(entry, "code", "") for name, entry in entries.items()} == {
        "pipe": "unsupported",
        "dangling": "unreadable",
        "circle": "unreadable",
    }
    assert "nowhere" in getattr(entries["dangling"], "reason", "")


def test_a_directory_that_is_gone_when_it_is_its_turn_is_named(tmp_path: Path) -> None:
    (tmp_path / "first").write_text("text")
    (tmp_path / "second").mkdir()
    groups = walk(tmp_path, "**/*")
    assert next(groups) == [tmp_path / "first"]
    (tmp_path / "second").rmdir()
    (oddity,) = next(groups)
    assert isinstance(oddity, SkippedFile)
    assert (oddity.path, oddity.code) == (tmp_path / "second", "unreadable")


def test_names_that_are_no_utf8_stay_apart(tmp_path: Path) -> None:
    for byte in ("\udce9", "\udcea"):
        (tmp_path / f"caf{byte}.txt").write_text("text")
    entries = list(discover([tmp_path]))
    assert [entry.name for entry in entries] == ["caf\ufffd.txt"] * 2
    assert len({getattr(entry, "key", "") for entry in entries}) == 2


def test_chunk_files_of_a_directory_are_one_document_though_another_lies_between(
    tmp_path: Path,
) -> None:
    (tmp_path / "m_directory").mkdir()
    (tmp_path / "m_directory" / "x_chunk_001.json").write_bytes(chunk_json(1))
    (tmp_path / "a_chunk_001.json").write_bytes(chunk_json(2))
    (tmp_path / "z_chunk_002.json").write_bytes(chunk_json(1))
    mine, theirs = discover([tmp_path])
    assert isinstance(mine, Source)
    assert isinstance(theirs, Source)
    ids = [json.loads(line)["chunk_id"][-1] for line in mine.read().splitlines()]
    assert (ids, len(theirs.read().splitlines())) == (["1", "2"], 1)


def test_a_chunk_file_that_is_too_large_or_changes_is_named(tmp_path: Path) -> None:
    large, small = tmp_path / "a_chunk_001.json", tmp_path / "b_chunk_002.json"
    small.write_bytes(chunk_json(2))
    with large.open("wb") as file:
        file.truncate(MAX_RECORD_BYTES + 1)
    broken, source = discover([tmp_path])
    assert isinstance(broken, BrokenSource)
    assert (broken.name, broken.code) == (large.name, "too_large")
    assert isinstance(source, Source)
    small.write_bytes(b"{")
    with pytest.raises(ParseError, match="changed"):
        read_content(source, max_bytes=LIMIT)


def test_a_line_of_chunk_lines_without_end_is_named_and_not_held(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    with path.open("wb") as file:
        file.write(chunk_json(1) + b"\n")
        file.write(b" " * (2 * MAX_RECORD_BYTES + 9) + b"{}\n")
        file.write(chunk_json(2))
    broken, source = discover([tmp_path])
    assert isinstance(broken, BrokenSource)
    assert (broken.name, broken.code) == ("all.jsonl:2", "too_large")
    assert isinstance(source, Source)
    ids = [json.loads(line)["chunk_id"][-1] for line in source.read().splitlines()]
    assert ids == ["1", "2"]


# --- on the way through --------------------------------------------------------------------------


def test_a_packed_document_comes_out_as_it_went_in() -> None:
    chunks = tuple(
        PreparedChunk(
            ordinal=number,
            text=f"Passage {number} 😀 with\na line end" * 100,
            context="Title > Two",
            start=number,
            end=number + 9,
            token_count=9,
            heading_path=("One", "Two"),
            page=number or None,
            key="",
            summary="",
            metadata={"number": number},
            content_sha256=f"{number:064x}",
        )
        for number in range(200)
    )
    document = PreparedDocument("Title", "text/plain", "plain", "en", "00", {"a": [1]}, chunks)
    assert unpack_document(pack_document(document)) == document
    assert len(pack_document(document)) < sum(len(chunk.text) for chunk in chunks) / 10


@pytest.fixture
def collection(media_root: Path) -> Collection:
    return CollectionFactory()


@pytest.mark.django_db
def test_a_queued_file_that_is_too_large_or_gone_stops_no_other(
    collection: Collection, tmp_path: Path, settings: Any
) -> None:
    settings.MAX_UPLOAD_BYTES = 1000
    for name, size in (("a.txt", 900), ("b.txt", 1001), ("c.txt", 10)):
        (tmp_path / name).write_text("x" * size)
    sources = list(discover([tmp_path]))
    (tmp_path / "c.txt").unlink()
    run = ingest_sources(collection=collection, sources=sources)
    failed = run.items.filter(state="failed").values_list("name", "error_code")
    assert dict(failed) == {"b.txt": "too_large", "c.txt": "unreadable"}
    assert list(Document.objects.values_list("source", flat=True)) == ["a.txt"]


@pytest.mark.django_db
def test_a_file_that_hangs_its_parser_fails_by_its_name_and_the_others_are_ready(
    collection: Collection, tmp_path: Path, settings: Any
) -> None:
    settings.PARSER_SECONDS = 1.0
    (tmp_path / "endless.pdf").write_bytes(handbook(9000))
    (tmp_path / "note.txt").write_text("A note.")
    run = ingest_inline(collection=collection, sources=discover([tmp_path]))
    assert (run.state, run.ready, run.failed) == (IngestionRun.State.PARTIAL, 1, 1)
    item = run.items.get(state="failed")
    assert (item.name, item.error_code) == ("endless.pdf", "too_slow")
    assert "RAGSITE_PARSER_SECONDS" in item.error
    assert Chunk.objects.get().text == "A note."


@pytest.mark.django_db
def test_a_text_of_more_chunks_than_vectors_fit_into_memory_is_too_large(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "MAX_VECTOR_BYTES", 4 * 384 * 3)
    texts = {"three": "word " * 600, "more": "word " * 2000}
    sources = [text_source(key, text) for key, text in texts.items()]
    run = ingest_inline(collection=collection, sources=sources)
    item = run.items.get(state="failed")
    assert (item.name, item.error_code) == ("more", "too_large")
    assert "more than 3 chunks" in item.error
    assert Chunk.objects.count() == 3


def test_work_goes_on_while_the_caller_is_busy() -> None:
    second_began = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            second_began.set()
        return number

    results = prefetch(work, range(3), room=2)
    next(results)
    assert second_began.wait(timeout=30)
    assert [result for _, result in results] == [1, 2]


def test_no_more_is_drawn_than_there_is_room_for() -> None:
    drawn: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    for number, _ in prefetch(lambda number: number, source(), room=10, size=lambda number: 3):
        assert len(drawn) <= number + 5
    assert len(drawn) == 100


def test_an_item_larger_than_the_room_goes_alone() -> None:
    assert list(prefetch(len, ["x" * 100, "y"], room=10, size=len)) == [("x" * 100, 100), ("y", 1)]


def test_an_exception_comes_where_the_result_would_have_come() -> None:
    def work(number: int) -> int:
        return 1 // (2 - number)

    results = prefetch(work, range(5), room=5)
    assert [next(results), next(results)] == [(0, 0), (1, 1)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_the_source_is_drawn_from_in_the_callers_thread() -> None:
    threads = set()

    def source() -> Iterator[int]:
        for number in range(5):
            threads.add(threading.get_ident())
            yield number

    assert len(list(prefetch(str, source(), room=2))) == 5
    assert threads == {threading.get_ident()}


@given(keys=st.lists(st.sampled_from("abcd"), max_size=30))
def test_segments_keep_every_source_and_no_key_meets_itself(keys: list[str]) -> None:
    sources = [text_source(key, f"text {number}") for number, key in enumerate(keys)]
    parts = [list(segment) for segment in split_segments(sources)]
    assert [source for part in parts for source in part] == sources
    for part in parts:
        assert len({source.key for source in part if isinstance(source, Source)}) == len(part) > 0


def test_a_large_file_has_a_segment_of_its_own() -> None:
    sizes = [1, 100_000_000, 2, 3, 100_000_000, 100_000_000]
    sources = [Source(str(number), "", size, bytes) for number, size in enumerate(sizes)]
    parts = [[source.size for source in segment] for segment in split_segments(sources)]
    assert parts == [[1], [100_000_000], [2, 3], [100_000_000], [100_000_000]]


@given(sizes=st.lists(st.integers(0, 20_000_000), max_size=40))
def test_batches_are_bounded_and_complete(sizes: list[int]) -> None:
    numbered = [Source(str(number), "", size, bytes) for number, size in enumerate(sizes)]
    parts = list(split_batches(numbered))
    assert [source for part in parts for source in part] == numbered
    for part in parts:
        assert len(part) == 1 or sum(source.size for source in part) <= 16 * 1024 * 1024
