"""Texts in languages that a collection's model was not made for: what people are told, and the
click that moves a collection whose model somebody chose."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role
from documents import services
from documents.ingestion import reembed
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, EmbeddingSpace, Reembedding
from documents.tests.factories import (
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
)
from inference.model_languages import is_made_for, known_languages, model_languages
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

HASHING = "inference.backends.hashing.HashingEmbedder"
GERMAN = (
    "Die Wartung der Fähre beginnt am Montag um neun Uhr. Der Hafenmeister hat den Schlüssel, und"
    " die Werkstatt bleibt bis zum Abend geschlossen."
)
ENGLISH = (
    "The harbour master has the key of the ferry, and the workshop is closed until the evening."
)


@pytest.fixture(autouse=True)
def _embedders(settings: Any) -> None:
    settings.INFERENCE = {
        "embedder": {
            "default": {"BACKEND": HASHING, "LANGUAGES": ["en"]},
            "many": {"BACKEND": HASHING, "OPTIONS": {"dimensions": 768}, "LANGUAGES": ["*"]},
        },
        "reranker": {},
    }


@pytest.fixture
def harbour(alice: Membership) -> Collection:
    """An English and a German document, embedded by the English model, which somebody chose."""
    collection = services.create_collection(
        workspace=alice.workspace, name="Harbour", automatic_model=False
    )
    sources = [text_source("ferry", ENGLISH), text_source("faehre", GERMAN)]
    services.ingest_inline(collection=collection, sources=sources)
    return collection


def browser(member: Membership) -> Client:
    return logged_in(member)


def test_a_configuration_says_more_of_languages_than_a_name(settings: Any) -> None:
    settings.INFERENCE["embedder"]["other"] = {"BACKEND": HASHING, "LANGUAGES": ["fr", "DE"]}
    assert model_languages("other", "all-MiniLM-L6-v2") == {"fr", "de"}
    assert is_made_for(model_languages("default", ""), "en-GB")
    assert not is_made_for(model_languages("default", ""), "de_CH")
    assert is_made_for(model_languages("many", ""), "zh")
    assert is_made_for(known_languages("unknown"), "de")


def test_one_click_moves_a_collection_to_a_model_for_its_languages(
    harbour: Collection, alice: Membership
) -> None:
    client = browser(alice)
    page = client.get(reverse("collection", args=["harbour"])).text
    assert "1 document of “Harbour” is in German, which its model hashing-384 was not" in page
    assert "Move to hashing-768" in page
    assert "is in German" in client.get(reverse("upload", args=["harbour"])).text

    page = client.post(reverse("collection_move", args=["harbour"]), follow=True).text
    assert "Passages are moving to hashing-768: 0 of 2." in page
    row = Reembedding.objects.get()
    assert (row.collection, row.created_by, row.state) == (harbour, alice.user, "running")
    token, cursor = reembed.take_over(row), reembed.FIRST_CURSOR
    while (following := reembed.move_batch(row, token=token, cursor=cursor)) is not None:
        cursor = following
    target = EmbeddingSpace.objects.get(name="hashing-768-768")
    assert set(Chunk.objects.values_list("space", flat=True)) == {target.pk}
    page = client.get(reverse("collection", args=["harbour"])).text
    assert "was not made for" not in page
    assert "are moving" not in page


def test_a_collection_of_a_former_release_is_moved_with_its_next_documents_or_by_a_click(
    harbour: Collection, alice: Membership
) -> None:
    services.update_collection(collection=harbour, automatic_model=True)
    address = reverse("collection", args=["harbour"])
    page = browser(alice).get(address).text
    assert "The next documents in these languages move the collection to hashing-768" in page
    assert "Move to hashing-768" in page
    more = [text_source("anleger", GERMAN.replace("Fähre", "Anleger"))]
    services.ingest_inline(collection=harbour, sources=more)
    said = (
        "Some documents are in German. They are being prepared so that questions in German find"
        " them: 0 of 2."
    )
    page = browser(alice).get(address).text
    assert said in page
    assert "Move to" not in page  # no click is needed
    run = harbour.runs.order_by("-pk").first()
    assert run is not None
    assert said in browser(alice).get(reverse("run", args=[run.pk])).text
    call = {"workspace": alice.workspace.slug}
    notes = browser(alice).get(reverse("api:run-detail", args=[run.pk]), call).json()["notes"]
    assert notes == [said]


def test_a_page_offers_the_better_model_of_this_release(
    harbour: Collection, alice: Membership
) -> None:
    services.delete_document(document=Document.objects.get(key="faehre"))
    services.update_collection(collection=harbour, automatic_model=True)
    old = EmbeddingSpace.objects.get(is_default=True)
    EmbeddingSpace.objects.filter(pk=old.pk).update(model_name="all-MiniLM-L6-v2", is_default=False)
    new = services.add_space(name="new", embedder="default")[0]
    EmbeddingSpace.objects.filter(pk=new.pk).update(model_name="bge-small-en-v1.5", is_default=True)
    address = reverse("collection", args=["harbour"])
    page = browser(alice).get(address).text
    assert "Its documents use all-MiniLM-L6-v2, the model of an earlier" in page
    assert "Move to bge-small-en-v1.5" in page
    bob = browser(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))
    assert "prepared with all-MiniLM-L6-v2" not in bob.get(address).text


def test_who_may_not_edit_reads_who_can(harbour: Collection, alice: Membership) -> None:
    bob = browser(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))
    page = bob.get(reverse("collection", args=["harbour"])).text
    assert "An owner or editor can move the collection to hashing-768." in page
    assert "Move to hashing-768" not in page
    assert bob.post(reverse("collection_move", args=["harbour"])).status_code == 403
    assert not Reembedding.objects.exists()


def test_without_a_model_for_them_the_cure_is_to_add_one(
    harbour: Collection, alice: Membership, settings: Any
) -> None:
    del settings.INFERENCE["embedder"]["many"]
    page = browser(alice).get(reverse("collection", args=["harbour"])).text
    assert "was not made for" in page
    assert "How to add a model for them" in page
    page = browser(alice).post(reverse("collection_move", args=["harbour"]), follow=True).text
    assert "No model for that is configured" in page
    settings.INFERENCE["embedder"]["default"]["LANGUAGES"] = []
    page = browser(alice).get(reverse("collection", args=["harbour"])).text
    assert "was not made for" not in page  # of hashing-384 nothing is known


def test_a_run_says_so_on_its_page_to_programs_and_on_a_terminal(
    harbour: Collection, alice: Membership, tmp_path: Any, capsys: Any
) -> None:
    (tmp_path / "anleger.txt").write_text(GERMAN.replace("Fähre", "Anleger"))
    call = ["ingest", str(tmp_path), "--collection", "harbour", "--json"]
    call_command(*call, "--workspace", alice.workspace.slug)
    report = json.loads(capsys.readouterr().out)
    (note,) = report["notes"]
    assert "1 document of “Harbour” is in German" in note
    assert "`manage.py spaces add hashing-768-768 --embedder many && manage.py reembed" in note
    client = browser(alice)
    address = reverse("api:run-detail", args=[report["run"]])
    answer = client.get(address, {"workspace": alice.workspace.slug})
    assert answer.json()["notes"] == [note]
    assert "is in German" in client.get(reverse("run", args=[report["run"]])).text
    running = RunFactory(collection=harbour)
    assert "is in German" not in client.get(reverse("run", args=[running.pk])).text


def test_one_doubtful_document_among_many_is_passed_over(harbour: Collection) -> None:
    DocumentFactory.create_batch(60, collection=harbour, language="en")
    assert services.language_gap(harbour) is None
    DocumentFactory.create_batch(2, collection=harbour, language="es")
    gap = services.language_gap(harbour)
    assert gap is not None
    assert (gap.languages, gap.document_count) == (("es",), 2)


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
