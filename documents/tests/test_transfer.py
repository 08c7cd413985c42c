"""A collection leaves as a file and comes back the same, here or elsewhere."""

import base64
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import transaction

from accounts.models import Workspace
from common.errors import InvalidInput
from documents import services
from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.tests.commands import run_command
from documents.tests.factories import CollectionFactory, WorkspaceFactory
from documents.validation import validate
from inference.backends.hashing import HashingEmbedder
from tests.kit import hashing, use_models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

HASHING = "inference.backends.hashing.HashingEmbedder"
TEXT = "\n\n".join(f"Paragraph {n} speaks of topic{n}. " * 25 for n in range(8))
METADATA = {"year": 2026, "tags": ["a", "b"]}
DOCUMENT_FIELDS = (
    *("key", "version", "is_current", "title", "source", "url", "media_type", "rendering"),
    *("language", "metadata", "declared", "access", "size", "source_sha256", "content_sha256"),
    *("chunk_count", "token_count", "status"),
)
CHUNK_FIELDS = (
    *("document__key", "ordinal", "key", "text", "context", "heading_path", "summary"),
    *("token_count", "start", "end", "page", "parent", "metadata", "access", "language"),
    *("media_type", "content_sha256", "is_current"),
)


@pytest.fixture
def collection() -> Collection:
    """Texts, chunk records, a text and a vector of a program's, something only some may see."""
    collection = CollectionFactory(slug="notes", name="Notes", default_language="en")
    sources = [
        text_source("one", TEXT, title="The first", metadata=METADATA),
        text_source("two", "# Head\n\nHead text.\n\n## Sub\n\nSub text.", file_name="two.md"),
    ]
    services.ingest_inline(collection=collection, sources=sources)
    services.store_items(
        collection=collection,
        items=[
            Item(id="vector", vector=np.arange(1, 385)),
            Item(id="both", text="Texte français de la note.", vector=np.ones(384), language="fr"),
        ],
    )
    Document.objects.filter(key="two").update(access=["user:7", "group:3"])
    Chunk.objects.filter(document__key="two").update(access=["user:7", "group:3"])
    return collection


@pytest.fixture
def other() -> Workspace:
    return WorkspaceFactory()


def exported(collection: Collection, *, with_vectors: bool = True) -> bytes:
    file = io.BytesIO()
    services.export_collection(collection=collection, file=file, with_vectors=with_vectors)
    return file.getvalue()


def put_in(data: bytes, workspace: Workspace, slug: str = "notes") -> IngestionRun:
    return services.import_collection(workspace=workspace, slug=slug, file=io.BytesIO(data))


def collection_in(workspace: Workspace, slug: str = "notes") -> Collection:
    return Collection.objects.get(workspace=workspace, slug=slug)


def content(collection: Collection) -> list[Any]:
    documents = Document.objects.filter(collection=collection).order_by("key", "version")
    chunks = Chunk.objects.filter(collection=collection)
    ordered = chunks.order_by("document__key", "document__version", "ordinal")
    return [*documents.values(*DOCUMENT_FIELDS), *ordered.values(*CHUNK_FIELDS)]


def vectors(collection: Collection) -> list[Any]:
    chunks = Chunk.objects.filter(collection=collection).order_by("document__key", "ordinal")
    return [np.asarray(vector) for vector in chunks.values_list("embedding", flat=True)]


def failures(run: IngestionRun) -> list[tuple[str, str]]:
    return list(run.items.filter(state="failed").values_list("name", "error"))


def test_everything_comes_back_with_the_very_vectors_and_later_imports_change_nothing(
    collection: Collection, other: Workspace
) -> None:
    Collection.objects.update(graph="off")
    data = exported(collection)
    run = put_in(data, other)
    copy = collection_in(other)
    assert (run.state, run.ready, run.total) == ("succeeded", 4, 4)
    assert content(copy) == content(collection)  # access lists, too
    assert all(map(np.array_equal, vectors(copy), vectors(collection)))
    assert (copy.name, copy.default_language, copy.graph) == ("Notes", "en", "off")
    assert validate().is_clean

    ids = set(Chunk.objects.values_list("id", flat=True))
    updated = list(Document.objects.values_list("updated_at", flat=True))
    for workspace in (other, collection.workspace):
        run = put_in(data, workspace)
        assert (run.skipped, run.ready, run.embedded) == (4, 0, 0)
    assert set(Chunk.objects.values_list("id", flat=True)) == ids
    assert list(Document.objects.values_list("updated_at", flat=True)) == updated
    source = text_source("one", TEXT, title="The first", metadata=METADATA)
    assert services.ingest_inline(collection=copy, sources=[source]).skipped == 1


def test_an_export_of_an_earlier_release_says_nothing_of_the_graph(
    collection: Collection, other: Workspace
) -> None:
    first, *lines = exported(collection).splitlines(keepends=True)
    header = json.loads(first)
    del header["collection"]["graph"]
    put_in(b"".join([json.dumps(header).encode() + b"\n", *lines]), other)
    assert collection_in(other).graph == "rules"


def test_without_vectors_texts_are_embedded_and_vectors_alone_fail(
    collection: Collection, other: Workspace
) -> None:
    run = put_in(exported(collection, with_vectors=False), other)
    assert (run.state, run.ready) == ("partial", 3)
    ((name, reason),) = failures(run)
    assert name == "vector"
    assert "empty" in reason
    mine, copied = Chunk.objects.filter(document__key="one").order_by("workspace", "ordinal"), []
    copied = [chunk for chunk in mine if chunk.workspace_id == other.pk]
    originals = [chunk for chunk in mine if chunk.workspace_id != other.pk]
    assert all(
        np.allclose(a.embedding, b.embedding, atol=1e-6)
        for a, b in zip(copied, originals, strict=True)
    )


def test_into_a_collection_of_another_model_chunks_are_embedded_anew(
    collection: Collection, other: Workspace, settings: Any
) -> None:
    use_models(settings, embedder={"default": hashing(), "wide": hashing(768)}, reranker={})
    space, _ = services.add_space(name="wide", embedder="wide")
    wide = CollectionFactory(workspace=other, slug="notes", space=space, default_language="en")
    Document.objects.filter(key="vector").delete()
    run = put_in(exported(collection), other)
    assert run.state == "succeeded"
    chunk = Chunk.objects.get(collection=wide, document__key="one", ordinal=0)
    wanted = HashingEmbedder(dimensions=768).embed_documents([f"{chunk.context}\n{chunk.text}"])[0]
    assert np.allclose(chunk.embedding, wanted, atol=1e-6)
    assert validate().is_clean


def test_changed_documents_are_replaced_and_their_unchanged_chunks_stay(
    collection: Collection, other: Workspace
) -> None:
    put_in(exported(collection), other)
    before = dict(
        Chunk.objects.filter(workspace=other, document__key="one").values_list("ordinal", "id")
    )
    changed = TEXT.replace("topic7", "another subject")
    source = text_source("one", changed, title="The first", metadata={"year": 2026})
    services.ingest_inline(collection=collection, sources=[source])
    run = put_in(exported(collection), other)
    assert (run.ready, run.skipped) == (1, 3)
    after = dict(
        Chunk.objects.filter(workspace=other, document__key="one").values_list("ordinal", "id")
    )
    assert before[0] == after[0]
    assert set(before.values()) != set(after.values())
    assert content(collection_in(other)) == content(collection)
    assert validate().is_clean


def test_superseded_versions_come_along(collection: Collection, other: Workspace) -> None:
    services.ingest_inline(
        collection=collection,
        sources=[text_source("one", TEXT.replace("topic1", "subject"), title="The first")],
        policy=IngestionRun.Policy.NEW_VERSION,
    )
    run = put_in(exported(collection), other)
    assert run.state == "succeeded"
    assert content(collection_in(other)) == content(collection)
    rows = Document.objects.filter(workspace=other, key="one").order_by("version")
    assert list(rows.values_list("version", "is_current")) == [(1, False), (2, True)]
    assert put_in(exported(collection), other).skipped == 5
    assert validate().is_clean


def test_what_is_stored_once_stays_so(collection: Collection, other: Workspace) -> None:
    services.ingest_inline(
        collection=collection,
        sources=[text_source("copy", TEXT, title="The first", metadata=METADATA)],
        store_once=True,
    )
    assert Document.objects.get(collection=collection, key="copy").is_link
    run = put_in(exported(collection), other)
    assert run.state == "succeeded"
    assert Document.objects.get(workspace=other, key="copy").is_link
    assert put_in(exported(collection), other).skipped == 5
    assert validate().is_clean


def test_documents_that_hold_no_text_yet_are_left_out(collection: Collection) -> None:
    services.ingest_text(collection=collection, key="waiting", text="It waits for a worker.")
    file = io.BytesIO()
    result = services.export_collection(collection=collection, file=file)
    assert (result.documents, result.left_out) == (4, 1)
    assert b'"waiting"' not in file.getvalue()


# --- broken files ---------------------------------------------------------------------------------


def lines_of(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def changed(data: bytes, number: int, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """With line `number`, from 1 on, another one."""
    lines = lines_of(data)
    line = json.loads(lines[number - 1])
    change(line)
    lines[number - 1] = json.dumps(line).encode() + b"\n"
    return b"".join(lines)


def nan_vector(line: dict[str, Any]) -> None:
    line["vector"] = base64.b64encode(np.full(384, np.nan, dtype="<f4").tobytes()).decode()


#: What is done to the first chunk of “one”, which is line 3, and what is said of it.
HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a NUL": (lambda line: line.update(text="a\0b"), "NUL"),
    "half a pair": (lambda line: line.update(text="a\ud800b"), "surrogate"),
    "a huge number": (lambda line: line.update(start=10**30), "“start” must be a whole number"),
    "a negative number": (lambda line: line.update(ordinal=-1), "“ordinal” must be"),
    "a number for text": (lambda line: line.update(text=5), "“text” must be text"),
    "true for a number": (lambda line: line.update(page=True), "“page” must be a whole number"),
    "a list for an object": (lambda line: line.update(metadata=[]), "“metadata” must be an object"),
    "another text": (lambda line: line.update(text="x" * len(line["text"])), "content_sha256"),
    "offsets": (lambda line: line.update(end=line["end"] + 1), "characters of “text” apart"),
    "another place": (lambda line: line.update(ordinal=5), "“ordinal” is 5; 0 comes next"),
    "no language": (lambda line: line.update(language="klingon"), "text search configuration"),
    "too few dimensions": (
        lambda line: line.update(vector=[1.0, 2.0]),
        "has 2 dimensions; those of",
    ),
    "NaN": (nan_vector, "NaN"),
    "zeros": (lambda line: line.update(vector=[0.0] * 384), "all zeros"),
    "no base64": (lambda line: line.update(vector="§§§§"), "base64"),
    "a huge float": (lambda line: line.update(vector=[1e300] * 384), "too large"),
    "text in a vector": (lambda line: line.update(vector=["1"] * 384), "neither base64 nor"),
    "another type": (
        lambda line: line.update(type="passage"),
        "must be one of document, chunk, end",
    ),
    "deep metadata": (
        lambda line: line.update(metadata=json.loads('{"a":' * 40 + "1" + "}" * 40)),
        "nested",
    ),
}


def test_a_broken_line_fails_its_document_by_its_number_and_no_other(
    collection: Collection, other: Workspace
) -> None:
    data = exported(collection)
    assert json.loads(lines_of(data)[1])["key"] == "one"
    for what, (change, said) in HOSTILE.items():
        with transaction.atomic():
            run = put_in(changed(data, 3, change), other)
            ((name, reason),) = failures(run)
            assert name == "one", what
            assert reason.startswith("Line 3: ")
            assert said in reason
            assert run.ready == 3, what
            assert not Document.objects.filter(workspace=other, key="one").exists()
            assert validate().is_clean, what
            transaction.set_rollback(True)


def test_a_line_that_is_no_json_is_named(collection: Collection, other: Workspace) -> None:
    lines = lines_of(exported(collection))
    for number, broken in ((3, b"{cut off\n"), (3, b"\xff\xfe\n"), (3, b"[1, 2]\n"), (3, b"\n")):
        run = put_in(b"".join([*lines[: number - 1], broken, *lines[number:]]), other)
        reasons = [reason for name, reason in failures(run) if name == "one"]
        assert len(reasons) == 1
        assert reasons[0].startswith("Line 3: ")


def test_a_broken_document_line_is_named_and_its_chunks_passed_over(
    collection: Collection, other: Workspace
) -> None:
    data = exported(collection)
    run = put_in(changed(data, 2, lambda line: line.update(key="x" * 2000)), other)
    assert failures(run) == [("line 2", "Line 2: “key” must have 1 to 1,024 characters.")]
    assert run.ready == 3


def test_a_missing_chunk_is_noticed(collection: Collection, other: Workspace) -> None:
    lines = lines_of(exported(collection))
    last = max(i for i, line in enumerate(lines[:20]) if b"topic7" in line)
    run = put_in(b"".join(lines[:last] + lines[last + 1 :]), other)
    reasons = dict(failures(run))
    assert " came." in reasons["one"]
    assert "were written" in reasons[f"line {len(lines) - 1}"]
    assert run.ready == 3


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_file_that_was_cut_off_is_noticed(
    collection: Collection, other: Workspace, share: float
) -> None:
    data = exported(collection)
    run = put_in(data[: int(len(data) * share)], other)
    assert "it was cut off" in failures(run)[-1][1]
    assert run.state in {"partial", "failed"}
    assert validate().is_clean


def test_more_behind_the_end_is_noticed(collection: Collection, other: Workspace) -> None:
    data = exported(collection)
    run = put_in(data + lines_of(data)[1], other)
    assert [reason.split(": ")[1][:20] for _, reason in failures(run)] == ["there is more behind"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 something else",
        b'{"type": "document"}\n',
        b'{"type": "ragsite-export", "version": 99, "collection": {}, "space": {}}\n',
        b'{"type": "ragsite-export", "version": 1}\n',
    ],
)
def test_what_is_no_export_is_refused(data: bytes, other: Workspace) -> None:
    with pytest.raises(InvalidInput, match="This is not an export"):
        put_in(data, other)
    assert not Collection.objects.filter(workspace=other).exists()


# --- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.gz"])
def test_commands_write_and_read_a_file(
    collection: Collection, other: Workspace, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / name)
    mine, theirs = ("--workspace", collection.workspace.slug), ("--workspace", other.slug)
    code, said = run_command("export", "--collection", "notes", "--with-vectors", "-o", path, *mine)
    assert (code, "4 documents" in said) == (0, True)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == [name]
    code, said = run_command("import", path, "--collection", "notes", *theirs)
    assert (code, "4 put in, 0 unchanged, 0 failed" in said) == (0, True)
    assert content(collection_in(other)) == content(collection)
    code, said = run_command("import", path, "--collection", "notes", "--json", *theirs)
    assert (code, json.loads(said)["documents"]["skipped"]) == (0, 4)


def test_a_compressed_file_that_was_cut_off_ends_with_1(
    collection: Collection, other: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "notes.jsonl.gz"
    path.write_bytes(gzip.compress(exported(collection))[:-500])
    code, said = run_command(
        "import", str(path), "--collection", "notes", "--workspace", other.slug
    )
    assert (code, "it was cut off" in said) == (1, True)


def test_what_cannot_be_read_or_written_ends_with_2(collection: Collection, tmp_path: Path) -> None:
    workspace = ("--workspace", collection.workspace.slug)
    absent = str(tmp_path / "absent" / "notes.jsonl")
    assert run_command("export", "--collection", "notes", "-o", absent, *workspace)[0] == 2
    assert run_command("export", "--collection", "nowhere", *workspace)[0] == 2
    assert run_command("import", absent, "--collection", "notes", *workspace)[0] == 2
