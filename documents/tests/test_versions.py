"""A changed document becomes a new version: readers see the old or the new, the old stays, and what
changed between them is shown."""

from collections.abc import Iterator
from random import Random
from string import ascii_lowercase
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from common.errors import InvalidInput
from documents import lexical_index, services
from documents.ingestion import jobs, loader, pipeline, preparation
from documents.ingestion.sources import Source, text_source
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun
from documents.services import ingest_inline
from documents.services.changes import changed_values, find_changes, in_order
from documents.tests.factories import CollectionFactory, MembershipFactory
from documents.tests.words import chunk_counts, counted_chunks
from tests.kit import queue_file, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

NEW_VERSION = IngestionRun.Policy.NEW_VERSION
VOCABULARY = [first + second for first in ascii_lowercase for second in ascii_lowercase]
PARAGRAPHS = [f"Paragraph {n} speaks of topic{n} at some length. " * 25 for n in range(12)]


def ingest(
    collection: Collection, text: str, *, key: str = "guide", **options: Any
) -> IngestionRun:
    options = {"policy": NEW_VERSION, **options}
    return ingest_inline(collection=collection, sources=[text_source(key, text)], **options)


def queue_note(collection: Collection, content: bytes, policy: str = NEW_VERSION) -> Document:
    return queue_file(collection, "note.txt", content, policy=policy)


def current_texts(collection: Collection) -> set[str]:
    chunks = Chunk.objects.filter(collection=collection, is_current=True)
    return set(chunks.values_list("text", flat=True))


def shape(collection: Collection) -> list[tuple[int, bool, str]]:
    rows = Document.objects.filter(collection=collection).order_by("version")
    return list(rows.values_list("version", "is_current", "status"))


def test_a_changed_document_becomes_a_version_and_the_old_one_stays(
    collection: Collection,
) -> None:
    ingest(collection, "The first text.")
    ingest(collection, "The second text.")
    assert shape(collection) == [(1, False, "ready"), (2, True, "ready")]
    old, new = Document.objects.order_by("version")
    assert services.document_text(old).text == "The first text."
    assert services.document_text(new).text == "The second text."
    assert current_texts(collection) == {"The second text."}
    assert list(new.versions) == [new, old]
    assert services.chunk_count(collection=collection) == 1


def test_chunks_that_did_not_change_take_their_vectors_over(collection: Collection) -> None:
    ingest(collection, "\n\n".join(PARAGRAPHS))
    changed = [*PARAGRAPHS[:-1], PARAGRAPHS[-1].replace("topic11", "something new")]
    run = ingest(collection, "\n\n".join(changed))
    old, new = Document.objects.order_by("version")
    before = {chunk.content_sha256: chunk for chunk in old.chunks.all()}
    after = list(new.chunks.all())
    shared = [chunk for chunk in after if chunk.content_sha256 in before]
    assert 1 <= run.embedded <= 3
    assert len(after) - len(shared) == run.embedded
    assert len(shared) > 5
    for chunk in shared:
        assert list(chunk.embedding) == list(before[chunk.content_sha256].embedding)
        assert chunk.text == before[chunk.content_sha256].text
        assert chunk.heading_path == before[chunk.content_sha256].heading_path
    assert [chunk.ordinal for chunk in after] == list(range(new.chunk_count))
    assert services.document_text(new).text.split() == "\n\n".join(changed).split()


def test_unchanged_bytes_make_no_version(collection: Collection) -> None:
    ingest(collection, "The same text.")
    run = ingest(collection, "The same text.")
    assert (run.state, run.skipped, run.ready) == ("succeeded", 1, 0)
    assert shape(collection) == [(1, True, "ready")]


def test_a_version_waits_beside_the_old_one_until_it_is_loaded(collection: Collection) -> None:
    work_on(queue_note(collection, b"The first text."))
    waiting = queue_note(collection, b"The second text.")
    assert shape(collection) == [(1, True, "ready"), (2, False, "queued")]
    assert current_texts(collection) == {"The first text."}
    pipeline.parse_documents([waiting.id])
    assert current_texts(collection) == {"The first text."}
    pipeline.embed_documents([waiting.id])
    assert shape(collection) == [(1, False, "ready"), (2, True, "ready")]
    assert current_texts(collection) == {"The second text."}


def test_a_version_that_waits_is_taken_by_the_newest_upload(collection: Collection) -> None:
    work_on(queue_note(collection, b"The first text."))
    second = queue_note(collection, b"The second text.")
    token, _ = jobs.claim([second.id])
    third = queue_note(collection, b"The third text.")
    assert third.id == second.id
    with jobs.lease_renewal(token):
        pass
    work_on(third)
    assert shape(collection) == [(1, False, "ready"), (2, True, "ready")]
    assert current_texts(collection) == {"The third text."}
    assert set(IngestionRun.objects.values_list("state", flat=True)) == {"succeeded"}


def test_a_first_text_that_was_never_loaded_is_replaced_and_no_version(
    collection: Collection,
) -> None:
    first = queue_note(collection, b"The first text.")
    second = queue_note(collection, b"The second text.")
    assert first.id == second.id
    work_on(second)
    assert shape(collection) == [(1, True, "ready")]
    assert current_texts(collection) == {"The second text."}


@pytest.mark.parametrize("policy", ["overwrite", "skip_if_unchanged"])
def test_another_policy_withdraws_a_version_that_waits(collection: Collection, policy: str) -> None:
    work_on(queue_note(collection, b"The first text."))
    waiting = queue_note(collection, b"The second text.")
    last = queue_note(collection, b"The third text.", policy=policy)
    pipeline.embed_documents(
        pipeline.parse_documents([waiting.id])
    )  # its message comes all the same
    work_on(last)
    assert shape(collection) == [(1, True, "ready")]
    assert current_texts(collection) == {"The third text."}
    assert set(IngestionRun.objects.values_list("state", flat=True)) == {"succeeded"}


@pytest.mark.parametrize("policy", ["skip_if_unchanged", "new_version"])
def test_the_first_text_again_is_news_while_another_one_waits(
    collection: Collection, policy: str
) -> None:
    work_on(queue_note(collection, b"The first text."))
    waiting = queue_note(collection, b"The second text.")
    last = queue_note(collection, b"The first text.", policy=policy)
    pipeline.embed_documents(pipeline.parse_documents([waiting.id]))
    work_on(last)
    assert current_texts(collection) == {"The first text."}
    assert Document.objects.filter(is_current=True).count() == 1


def test_an_overwriting_that_is_overtaken_by_a_version_stays_behind_it(
    collection: Collection,
) -> None:
    work_on(queue_note(collection, b"The first text."))
    overwriting = queue_note(collection, b"The second text.", policy="overwrite")
    version = queue_note(collection, b"The third text.")
    work_on(version)
    work_on(overwriting)
    assert shape(collection) == [(1, False, "ready"), (2, True, "ready")]
    assert current_texts(collection) == {"The third text."}
    assert services.document_text(overwriting).text == "The second text."


def test_vectors_that_vanish_before_they_are_taken_over_are_made(collection: Collection) -> None:
    work_on(queue_note(collection, "\n\n".join(PARAGRAPHS).encode()))
    overwriting = queue_note(collection, b"Something else.", policy="overwrite")
    version = queue_note(collection, "\n\n".join([*PARAGRAPHS, "And more."]).encode())
    pipeline.parse_documents([version.id])
    token, (held,) = jobs.claim([version.id])
    job = loader.LoadJob(
        document=held,
        prepared=preparation.unpack_document(bytes(held.staged.payload)),
        digest="",
        source_sha256=held.source_sha256,
    )

    def interrupted() -> Iterator[list[loader.LoadJob]]:
        yield [job]
        work_on(overwriting)  # between asking what is known and loading

    assert len(list(loader.load_groups(interrupted(), token=token))) == 1
    assert shape(collection) == [(1, False, "ready"), (2, True, "ready")]
    assert services.document_text(overwriting).text == "Something else."
    assert services.document_text(version).text.endswith("And more.")
    assert not Chunk.objects.filter(embedding=None).exists()


def test_a_version_that_fails_leaves_the_old_one_and_says_so(collection: Collection) -> None:
    work_on(queue_note(collection, b"The first text."))
    broken = queue_note(collection, b"\x89PNG\r\n\x1a\n" + bytes(300))
    work_on(broken)
    item = IngestionItem.objects.get(state="failed")
    assert shape(collection) == [(1, True, "ready"), (2, False, "failed")]
    assert current_texts(collection) == {"The first text."}
    assert "version 1 stays current" in item.error
    work_on(queue_note(collection, b"The second text."))
    assert shape(collection) == [(1, False, "ready"), (2, True, "ready")]


def test_words_of_superseded_versions_do_not_count(collection: Collection) -> None:
    ingest(collection, "A text about xylophones.")
    ingest(collection, "A text about bassoons.")
    at_once = chunk_counts(collection)
    assert at_once["english", "bassoon"] == 1
    assert ("english", "xylophon") not in at_once
    assert counted_chunks(collection) == {"english": 1}
    lexical_index.rebuild_lexical_index(collection.pk)
    assert chunk_counts(collection) == at_once
    assert counted_chunks(collection) == {"english": 1}


def test_a_later_version_of_an_earlier_text_takes_its_place_again(collection: Collection) -> None:
    for text in ("The first text.", "The second text.", "The first text."):
        ingest(collection, text)
    assert shape(collection) == [(1, False, "ready"), (2, False, "ready"), (3, True, "ready")]
    assert current_texts(collection) == {"The first text."}


def test_a_version_keeps_the_access_list(collection: Collection) -> None:
    ingest(collection, "The first text.")
    Document.objects.update(access=["user:7"])
    ingest(collection, "The second text.")
    assert Document.objects.get(version=2).access == ["user:7"]
    assert Chunk.objects.get(document__version=2).access == ["user:7"]


def test_a_superseded_version_is_deleted_alone_and_the_current_one_is_not(
    collection: Collection,
) -> None:
    for text in ("The first text.", "The second text.", "The third text."):
        ingest(collection, text)
    first, second, third = Document.objects.order_by("version")
    services.delete_version(document=second)
    assert shape(collection) == [(1, False, "ready"), (3, True, "ready")]
    with pytest.raises(InvalidInput, match="current version"):
        services.delete_version(document=third)
    ingest(collection, "The fourth text.")
    assert services.prune_versions(document=first, keep=2) == 1
    assert [version for version, _, _ in shape(collection)] == [3, 4]


def test_sources_of_one_run_may_bring_a_key_twice(collection: Collection) -> None:
    sources: list[Source] = [text_source("guide", f"Text number {n}.") for n in range(3)]
    run = ingest_inline(collection=collection, sources=sources, policy=NEW_VERSION)
    assert (run.state, run.ready) == ("succeeded", 3)
    assert [version for version, _, _ in shape(collection)] == [1, 2, 3]
    assert current_texts(collection) == {"Text number 2."}


@pytest.mark.parametrize("policy", ["skip_if_unchanged", "new_version"])
def test_of_a_long_document_only_touched_chunks_are_embedded(
    collection: Collection, policy: str
) -> None:
    """About 100 chunks; a neighbour shares its overlap with what changed."""
    random = Random(1)
    paragraphs = [" ".join(_sentence(random) for _ in range(5)) for _ in range(230)]
    ingest(collection, "\n\n".join(paragraphs))
    before = chunk_ids(collection)
    assert len(before) > 80
    middle = [
        *paragraphs[:100],
        paragraphs[100].replace(".", ", as we know.", 1),
        *paragraphs[101:],
    ]
    run = ingest(collection, "\n\n".join(middle), policy=policy)
    after = chunk_ids(collection)
    assert 1 <= run.embedded <= 3
    assert len(after.keys() - before.keys()) == run.embedded
    if policy == "skip_if_unchanged":
        assert all(after[digest] == before[digest] for digest in after.keys() & before.keys())
    beginning = ["A sentence that was not there before.", *middle]
    assert 1 <= ingest(collection, "\n\n".join(beginning), policy=policy).embedded <= 10


def _sentence(random: Random) -> str:
    return " ".join(random.choices(VOCABULARY, k=14)).capitalize() + "."


def chunk_ids(collection: Collection) -> dict[str, int]:
    chunks = Chunk.objects.filter(collection=collection, is_current=True)
    return dict(chunks.values_list("content_sha256", "id"))


OLD = """# Leave

Everybody has 28 days of leave a year.

Leave is agreed with your lead.

# Travel

Trains are booked by everybody alone.

Receipts are paid back until 14 March.
"""
NEW = """# Leave

Everybody has 30 days of leave a year.

A day off for moving house is paid.

# Travel

Receipts are paid back until 14 April.

Trains are booked by everybody alone.
"""


def versions(collection: Collection, *texts: str) -> list[Document]:
    for text in texts:
        source = text_source("policy", text, media_type="text/markdown")
        ingest_inline(collection=collection, sources=[source], policy="new_version")
    return list(Document.objects.filter(collection=collection).order_by("version"))


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        ("It costs 3.50 euros.", "It costs 4.50 euros.", (("3.50", "4.50"),)),
        ("until 14 March", "until 14 April", (("14 March", "14 April"),)),
        ("vom 3. bis zum 5. Mai", "vom 3. bis zum 6. Mai", (("5", "6"),)),
        ("el 12 de mayo de 2026", "el 12 de mayo de 2027", (("2026", "2027"),)),
        ("ten days", "ten weeks", ()),
    ],
)
def test_numbers_and_dates_that_changed(
    before: str, after: str, values: tuple[tuple[str, str], ...]
) -> None:
    assert changed_values(before, after) == values


@pytest.mark.django_db
def test_changes_name_numbers_first_and_pass_over_what_moved() -> None:
    old, new = versions(CollectionFactory(), OLD, NEW)
    changes = find_changes(old, new)
    assert [(change.kind, change.values) for change in changes] == [
        ("changed", (("28", "30"),)),
        ("changed", (("14 March", "14 April"),)),
        ("removed", ()),
        ("added", ()),
    ]
    for change in changes:
        for document, side in ((old, change.before), (new, change.after)):
            if side is not None:
                assert side.chunk is not None
                assert side.chunk.document_id == document.pk
                place = side.start - side.chunk.start
                assert side.chunk.text[place:].startswith(side.text)
    assert in_order(new, old) == in_order(old, new) == (old, new)
    assert find_changes(new, new) == []


@pytest.mark.django_db
def test_the_page_links_both_versions_and_compares_documents_that_may_be_read(
    client: Client,
) -> None:
    member = MembershipFactory()
    client.force_login(member.user)
    collection = CollectionFactory(workspace=member.workspace)
    old, new = versions(collection, OLD, NEW)
    source = text_source("other", "# Leave\n\nEverybody has 31 days of leave a year.\n")
    ingest_inline(collection=collection, sources=[source])
    other = Document.objects.get(key="other")
    address = reverse("document_compare", args=[collection.slug, new.pk])
    page = client.get(address).content.decode()
    assert "<del>28</del> → <ins>30</ins>" in page
    for document in (old, new):
        assert f"/{document.pk}/?chunk=" in page
    assert client.get(f"{address}?with={other.pk}").status_code == 200
    Document.objects.filter(pk=other.pk).update(access=["group:1"])
    assert client.get(f"{address}?with={other.pk}").status_code == 404
