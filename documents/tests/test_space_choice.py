"""A collection's model follows the languages of its documents, unless somebody chose it; and what
people are told of it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Any

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.db import connection, connections
from django.urls import reverse

from accounts.models import Membership, Role
from documents import services
from documents.ingestion import pipeline, reembed, space_choice
from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, EmbeddingSpace, Reembedding
from documents.services import Upload
from documents.tests.factories import (
    CollectionFactory,
    MembershipFactory,
    RunFactory,
)
from documents.validation import validate
from inference.backends.hashing import HashingEmbedder
from inference.model_languages import is_made_for, known_languages, model_languages, supersedes
from tests.kit import hashing, logged_in, use_models

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

HASHING = "inference.backends.hashing.HashingEmbedder"
ENGLISH = (
    "The harbour master has the key of the ferry, and the workshop is closed until the evening."
)
GERMAN = (
    "Die Wartung der Fähre beginnt am Montag um neun Uhr. Der Hafenmeister hat den Schlüssel, und"
    " die Werkstatt bleibt bis zum Abend geschlossen."
)
RUSSIAN = (
    "Паром отправляется от причала каждый час, а мастерская закрыта до вечера. Ключ находится у"
    " начальника порта, и его можно получить утром."
)
CHINESE = "渡轮每小时从码头出发，维修车间晚上才开门。钥匙由港务长保管，早上可以领取。"


@pytest.fixture(autouse=True)
def _embedders(settings: Any) -> None:
    use_models(
        settings,
        embedder={"default": hashing(LANGUAGES=["en"]), "many": hashing(768, LANGUAGES=["*"])},
        reranker={},
    )


@pytest.fixture
def harbour() -> Collection:
    workspace = MembershipFactory().workspace
    return services.create_collection(workspace=workspace, name="Harbour", graph="off")


def ingest(collection: Collection, *texts: str, prefix: str = "d") -> Any:
    sources = [text_source(f"{prefix}{number}", text) for number, text in enumerate(texts)]
    return services.ingest_inline(
        collection=Collection.objects.get(pk=collection.pk), sources=sources
    )


def english(number: int) -> list[str]:
    """Texts that all differ."""
    return [f"{ENGLISH} This is note {each} on it." for each in range(number)]


def model_of(collection: Collection) -> str:
    return EmbeddingSpace.objects.get(collections=collection).model_name


def models_of_chunks(collection: Collection) -> set[str]:
    chunks = Chunk.objects.filter(collection=collection)
    return set(chunks.values_list("space__model_name", flat=True))


def move_on() -> None:
    """What the workers do for every move."""
    for row in Reembedding.objects.filter(state="running"):
        token, cursor = reembed.take_over(row), reembed.FIRST_CURSOR
        while (following := reembed.move_batch(row, token=token, cursor=cursor)) is not None:
            cursor = following


@pytest.mark.parametrize("text", [GERMAN, RUSSIAN, CHINESE])
def test_an_empty_collection_takes_the_model_of_its_first_documents(
    harbour: Collection, text: str
) -> None:
    ingest(harbour, text)
    assert models_of_chunks(harbour) == {"hashing-768"}
    assert not Reembedding.objects.exists()
    again = ingest(harbour, text)
    assert (again.skipped, again.embedded) == (1, 0)


def test_english_documents_stay_with_the_default(harbour: Collection) -> None:
    ingest(harbour, ENGLISH)
    assert models_of_chunks(harbour) == {"hashing-384"}
    assert EmbeddingSpace.objects.count() == 1


def test_a_mixed_first_batch_takes_the_model_for_many(harbour: Collection) -> None:
    ingest(harbour, *english(12), GERMAN)
    assert models_of_chunks(harbour) == {"hashing-768"}


def test_a_collection_that_turns_out_mixed_is_moved_while_both_spaces_are_searched(
    harbour: Collection,
) -> None:
    ingest(harbour, *english(30))
    ingest(harbour, GERMAN, prefix="de")
    harbour.refresh_from_db()
    row = Reembedding.objects.get()
    assert (row.collection, row.created_by, row.state, row.total) == (harbour, None, "running", 30)
    german = Chunk.objects.get(document__key="de0")
    assert german.space.model_name == "hashing-768"  # at once
    assert harbour.former_spaces == [EmbeddingSpace.objects.get(is_default=True).pk]
    assert harbour.automatic_model
    (note,) = services.model_notes(harbour).sentences
    assert note == (
        "Some documents are in German. They are being prepared so that questions in German find"
        " them: 0 of 30."
    )
    ingest(harbour, GERMAN.replace("Montag", "Dienstag"), prefix="more")
    assert Reembedding.objects.get().token == row.token  # nothing began anew
    move_on()
    harbour.refresh_from_db()
    assert models_of_chunks(harbour) == {"hashing-768"}
    assert harbour.former_spaces == []
    assert services.model_notes(harbour).sentences == []
    assert ingest(harbour, *english(30)).skipped == 30


def test_one_doubtful_document_among_many_moves_nothing(harbour: Collection) -> None:
    ingest(harbour, *english(60))
    ingest(harbour, GERMAN, prefix="de")
    assert models_of_chunks(harbour) == {"hashing-384"}
    ingest(harbour, GERMAN, prefix="de")  # nor does the same one, ingested twice
    assert model_of(harbour) == "hashing-384"
    ingest(harbour, GERMAN.replace("Montag", "Dienstag"), prefix="more")
    assert model_of(harbour) == "hashing-768"


def test_texts_that_do_not_tell_their_language_move_nothing(
    harbour: Collection, settings: Any
) -> None:
    settings.FALLBACK_LANGUAGE = "de"
    ingest(harbour, "Hafen 4711", "A-17", "Kai 3")
    services.store_items(collection=harbour, items=[Item(id="kai", text="Kai 4")])
    assert set(Document.objects.values_list("language", flat=True)) == {"de"}
    assert models_of_chunks(harbour) == {"hashing-384"}
    stated = services.create_collection(workspace=harbour.workspace, name="Stated")
    services.update_collection(collection=stated, language="de")
    ingest(stated, "Hafen 4711")  # here somebody said so
    assert models_of_chunks(stated) == {"hashing-768"}


def test_names_in_an_english_sentence_make_it_no_other_language(harbour: Collection) -> None:
    text = (
        "I Proud to Be an Indian (Hindi: एक भारतीय होने पर गर्व , Urdu: ) is a 2004 Indian Hindi"
        " action film written and directed by Puneet Sira and produced by Sohail Khan."
    )
    ingest(harbour, text)
    assert Document.objects.get().language == "en"
    assert models_of_chunks(harbour) == {"hashing-384"}


@pytest.mark.parametrize("languages", [[], ["*"]])
def test_nothing_changes_for_a_model_of_unknown_languages_or_of_many(
    harbour: Collection, settings: Any, languages: list[str]
) -> None:
    settings.INFERENCE["embedder"]["default"]["LANGUAGES"] = languages
    ingest(harbour, GERMAN)
    assert models_of_chunks(harbour) == {"hashing-384"}


def test_nothing_changes_without_a_model_for_the_language(
    harbour: Collection, settings: Any
) -> None:
    settings.INFERENCE["embedder"]["many"]["LANGUAGES"] = ["fr", "en"]
    ingest(harbour, GERMAN)
    assert models_of_chunks(harbour) == {"hashing-384"}
    (note,) = services.model_notes(harbour).sentences
    assert "No model for that is configured" in note


def by_setting(collection: Collection, english: EmbeddingSpace) -> None:
    services.update_collection(collection=collection, automatic_model=False)


def by_command(collection: Collection, english: EmbeddingSpace) -> None:
    where = ["--collection", collection.slug, "--workspace", collection.workspace.slug]
    call_command("reembed", "--to", english.name, *where)


def by_command_for_all(collection: Collection, english: EmbeddingSpace) -> None:
    call_command("reembed", "--to", english.name)


def by_admin(collection: Collection, english: EmbeddingSpace) -> None:
    services.queue_reembedding(target=english)
    move_on()


@pytest.mark.parametrize("choose", [by_setting, by_command, by_command_for_all, by_admin])
def test_a_model_that_somebody_chose_stays_and_a_note_says_what_it_lacks(
    harbour: Collection, settings: Any, choose: Any
) -> None:
    settings.INFERENCE["embedder"]["other"] = {
        "BACKEND": HASHING, "OPTIONS": {"dimensions": 512}, "LANGUAGES": ["en"]
    }  # fmt: skip
    other, _ = services.add_space(name="other", embedder="other")
    choose(harbour, other)
    harbour.refresh_from_db()
    assert not harbour.automatic_model
    before = model_of(harbour)
    ingest(harbour, GERMAN)
    assert models_of_chunks(harbour) == {before}
    harbour.refresh_from_db()
    (note,) = services.model_notes(harbour).sentences
    assert "is in German" in note
    services.move_to_fitting_model(collection=harbour, user=None)
    move_on()
    assert models_of_chunks(harbour) == {"hashing-768"}


def test_vectors_that_a_program_stored_are_never_replaced(harbour: Collection) -> None:
    own = Item(id="own", text=ENGLISH, vector=np.ones(384))
    services.store_items(collection=harbour, items=[own, Item(id="text", text=GERMAN)])
    ingest(harbour, GERMAN)
    harbour.refresh_from_db()
    assert not harbour.automatic_model
    assert models_of_chunks(harbour) == {"hashing-384"}
    assert np.allclose(Chunk.objects.get(document__key="own").embedding, np.ones(384))


def test_of_several_workers_one_decides_and_what_the_others_embedded_is_made_anew(
    harbour: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = 3
    texts = [*english(2 * workers), *(f"{GERMAN} Nummer {n} von allen." for n in range(workers))]
    uploads = [
        Upload(name=f"{n}.txt", file=ContentFile(text.encode())) for n, text in enumerate(texts)
    ]
    services.ingest_uploads(collection=harbour, uploads=uploads)
    ids = list(Document.objects.order_by("pk").values_list("pk", flat=True))
    assert len(pipeline.parse_documents(ids)) == len(ids)
    embedding, is_decided = Semaphore(0), Event()
    embed = HashingEmbedder.embed_documents

    def embed_late(self: HashingEmbedder, given: Any) -> Any:
        if self.dimensions == 384:
            embedding.release()
            assert is_decided.wait(60)
        return embed(self, given)

    monkeypatch.setattr(HashingEmbedder, "embed_documents", embed_late)
    changes: list[int] = []
    change = space_choice._change_space

    def noted(collection: Collection, target: EmbeddingSpace) -> None:
        changes.append(target.pk)
        change(collection, target)

    monkeypatch.setattr(space_choice, "_change_space", noted)

    def work(mine: list[int]) -> None:
        try:
            pipeline.embed_documents(mine)
        finally:
            connections.close_all()

    english_ids, german_ids = ids[: 2 * workers], ids[2 * workers :]
    with ThreadPoolExecutor(2 * workers) as pool:
        late = [pool.submit(work, english_ids[n::workers]) for n in range(workers)]
        for _ in range(workers):
            assert embedding.acquire(timeout=60)
        # Each embeds English texts for the former space by now; then several decide at once.
        deciding = [pool.submit(work, german_ids[n::workers]) for n in range(workers)]
        for each in deciding:
            each.result(timeout=60)
        is_decided.set()
        for each in late:
            each.result(timeout=60)
    move_on()
    harbour.refresh_from_db()
    assert len(changes) == 1
    assert models_of_chunks(harbour) == {"hashing-768"}
    assert {len(chunk.embedding) for chunk in Chunk.objects.all()} == {768}
    assert set(Document.objects.values_list("status", flat=True)) == {"ready"}
    assert harbour.former_spaces == []
    assert validate(collection_id=harbour.pk).findings == ()


def test_texts_are_cut_by_the_tokens_of_the_model_that_they_get(
    harbour: Collection, settings: Any
) -> None:
    settings.INFERENCE["embedder"]["many"]["OPTIONS"]["max_tokens"] = 40
    text = "\n\n".join(f"{GERMAN} Nummer {n} von allen." for n in range(4))
    ingest(harbour, text)
    assert max(Chunk.objects.values_list("token_count", flat=True)) <= 40


def test_the_better_model_of_this_release_is_offered(harbour: Collection) -> None:
    assert supersedes("BAAI/bge-small-en-v1.5", "sentence-transformers/all-MiniLM-L6-v2")
    assert not supersedes("all-MiniLM-L6-v2", "bge-small-en-v1.5")
    ingest(harbour, ENGLISH)
    old = EmbeddingSpace.objects.get(is_default=True)
    EmbeddingSpace.objects.filter(pk=old.pk).update(model_name="all-MiniLM-L6-v2", is_default=False)
    new = services.add_space(name="new", embedder="default")[0]
    EmbeddingSpace.objects.filter(pk=new.pk).update(model_name="bge-small-en-v1.5", is_default=True)
    harbour.refresh_from_db()
    notes = services.model_notes(harbour)
    assert (notes.gap, notes.better) == (None, new)
    (finding,) = validate(collection_id=harbour.pk).findings
    assert finding.check.name == "former_model"
    assert finding.examples == (f"{harbour.workspace.slug}/harbour",)
    owner = Membership.objects.get(workspace=harbour.workspace)
    viewer = MembershipFactory(workspace=harbour.workspace, role=Role.VIEWER)
    shown, of_viewer = (
        logged_in(who).get(reverse("collection", args=["harbour"])).text for who in (owner, viewer)
    )
    assert "Its documents use all-MiniLM-L6-v2, the model of an earlier" in shown
    assert "Move to bge-small-en-v1.5" in shown
    assert "Move to" not in of_viewer
    services.update_collection(collection=harbour, automatic_model=False)
    assert services.model_notes(harbour).better is None
    assert validate(collection_id=harbour.pk).findings == ()


@pytest.fixture
def _latest_migration() -> Iterator[None]:
    yield
    call_command("migrate", verbosity=0)


@pytest.mark.nightly
@pytest.mark.usefixtures("_latest_migration")
def test_of_a_former_release_what_was_moved_by_hand_stays(harbour: Collection) -> None:
    other = CollectionFactory(workspace=harbour.workspace)
    space = EmbeddingSpace.objects.get(is_default=True)
    Reembedding.objects.create(target=space, collection=other, state="done")
    call_command("migrate", "documents", "0017_scanned_page", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM documents_collection LIMIT 0")
        assert "automatic_model" not in [column.name for column in cursor.description]
    call_command("migrate", verbosity=0)
    assert dict(Collection.objects.values_list("pk", "automatic_model")) == {
        harbour.pk: True,
        other.pk: False,
    }


@pytest.fixture
def chosen(alice: Membership) -> Collection:
    """An English and a German document, embedded by the English model, which somebody chose."""
    collection = services.create_collection(
        workspace=alice.workspace, name="Harbour", automatic_model=False
    )
    sources = [text_source("ferry", ENGLISH), text_source("faehre", GERMAN)]
    services.ingest_inline(collection=collection, sources=sources)
    return collection


def test_a_configuration_says_more_of_languages_than_a_name(settings: Any) -> None:
    settings.INFERENCE["embedder"]["other"] = {"BACKEND": HASHING, "LANGUAGES": ["fr", "DE"]}
    assert model_languages("other", "all-MiniLM-L6-v2") == {"fr", "de"}
    assert is_made_for(model_languages("default", ""), "en-GB")
    assert not is_made_for(model_languages("default", ""), "de_CH")
    assert is_made_for(model_languages("many", ""), "zh")
    assert is_made_for(known_languages("unknown"), "de")


def test_one_click_moves_a_collection_to_a_model_for_its_languages(
    chosen: Collection, alice: Membership
) -> None:
    client = logged_in(alice)
    page = client.get(reverse("collection", args=["harbour"])).text
    assert "1 document of “Harbour” is in German, which its model hashing-384 was not" in page
    assert "Move to hashing-768" in page
    assert "is in German" in client.get(reverse("upload", args=["harbour"])).text

    page = client.post(reverse("collection_move", args=["harbour"]), follow=True).text
    assert "Passages are moving to hashing-768: 0 of 2." in page
    row = Reembedding.objects.get()
    assert (row.collection, row.created_by, row.state) == (chosen, alice.user, "running")
    token, cursor = reembed.take_over(row), reembed.FIRST_CURSOR
    while (following := reembed.move_batch(row, token=token, cursor=cursor)) is not None:
        cursor = following
    target = EmbeddingSpace.objects.get(name="hashing-768-768")
    assert set(Chunk.objects.values_list("space", flat=True)) == {target.pk}
    page = client.get(reverse("collection", args=["harbour"])).text
    assert "was not made for" not in page
    assert "are moving" not in page


def test_a_collection_of_a_former_release_is_moved_with_its_next_documents_or_by_a_click(
    chosen: Collection, alice: Membership
) -> None:
    services.update_collection(collection=chosen, automatic_model=True)
    address = reverse("collection", args=["harbour"])
    page = logged_in(alice).get(address).text
    assert "The next documents in these languages move the collection to hashing-768" in page
    assert "Move to hashing-768" in page
    more = [text_source("anleger", GERMAN.replace("Fähre", "Anleger"))]
    services.ingest_inline(collection=chosen, sources=more)
    said = (
        "Some documents are in German. They are being prepared so that questions in German find"
        " them: 0 of 2."
    )
    page = logged_in(alice).get(address).text
    assert said in page
    assert "Move to" not in page  # no click is needed
    run = chosen.runs.order_by("-pk").first()
    assert run is not None
    assert said in logged_in(alice).get(reverse("run", args=[run.pk])).text
    call = {"workspace": alice.workspace.slug}
    notes = logged_in(alice).get(reverse("api:run-detail", args=[run.pk]), call).json()["notes"]
    assert notes == [said]


def test_who_may_not_edit_reads_who_can(chosen: Collection, alice: Membership) -> None:
    bob = logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))
    page = bob.get(reverse("collection", args=["harbour"])).text
    assert "An owner or editor can move the collection to hashing-768." in page
    assert "Move to hashing-768" not in page
    assert bob.post(reverse("collection_move", args=["harbour"])).status_code == 403
    assert not Reembedding.objects.exists()


def test_without_a_model_for_them_the_cure_is_to_add_one(
    chosen: Collection, alice: Membership, settings: Any
) -> None:
    del settings.INFERENCE["embedder"]["many"]
    page = logged_in(alice).get(reverse("collection", args=["harbour"])).text
    assert "was not made for" in page
    assert "How to add a model for them" in page
    page = logged_in(alice).post(reverse("collection_move", args=["harbour"]), follow=True).text
    assert "No model for that is configured" in page
    settings.INFERENCE["embedder"]["default"]["LANGUAGES"] = []
    page = logged_in(alice).get(reverse("collection", args=["harbour"])).text
    assert "was not made for" not in page  # of hashing-384 nothing is known


def test_a_run_says_so_on_its_page_to_programs_and_on_a_terminal(
    chosen: Collection, alice: Membership, tmp_path: Any, capsys: Any
) -> None:
    (tmp_path / "anleger.txt").write_text(GERMAN.replace("Fähre", "Anleger"))
    call = ["ingest", str(tmp_path), "--collection", "harbour", "--json"]
    call_command(*call, "--workspace", alice.workspace.slug)
    report = json.loads(capsys.readouterr().out)
    (note,) = report["notes"]
    assert "1 document of “Harbour” is in German" in note
    assert "`manage.py spaces add hashing-768-768 --embedder many && manage.py reembed" in note
    client = logged_in(alice)
    address = reverse("api:run-detail", args=[report["run"]])
    answer = client.get(address, {"workspace": alice.workspace.slug})
    assert answer.json()["notes"] == [note]
    assert "is in German" in client.get(reverse("run", args=[report["run"]])).text
    running = RunFactory(collection=chosen)
    assert "is in German" not in client.get(reverse("run", args=[running.pk])).text


def test_a_new_collection_gets_a_model_for_its_language(alice: Membership) -> None:
    made = {
        language: services.create_collection(
            workspace=alice.workspace, name=f"In {language or 'any'}", language=language
        ).space.model_name
        for language in ("", "en", "de")
    }
    assert made == {"": "hashing-384", "en": "hashing-384", "de": "hashing-768"}
    mixed = services.create_collection(
        workspace=alice.workspace, name="Mixed", languages=["en", "es"]
    )
    assert mixed.space.model_name == "hashing-768"


def test_before_the_first_document_the_default_language_counts(alice: Membership) -> None:
    collection = CollectionFactory(workspace=alice.workspace, default_language="pl")
    collection.space = services.default_space()
    gap = services.language_gap(collection)
    assert gap is not None
    assert "Documents of" in gap.sentence
    assert "are in Polish" in gap.sentence
    assert not Document.objects.exists()
