"""Questions in a language that a model was not made for, and over documents in another one."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import create_collection, ingest_inline
from search.query_options import site_scope
from search.services import search

pytestmark = pytest.mark.django_db

HASHING = "inference.backends.hashing.HashingEmbedder"
MULTILINGUAL = {
    "BACKEND": "inference.backends.transformers_local.TransformersEmbedder",
    "OPTIONS": {"model": "multilingual-e5-small"},
}
TEXTS = {
    "whale": "The blue whale, the largest animal that has ever lived, eats krill.",
    "guitarra": "La guitarra española tiene seis cuerdas y un cuerpo de madera.",
    "impfung": "Die Impfung gegen Masern wird Kindern im ersten Lebensjahr empfohlen.",
    "parliament": "Parliament passes the budget of the country every autumn.",
}


def filled(alice: Membership, settings: Any, **embedder: Any) -> Collection:
    settings.INFERENCE = {"embedder": {"default": embedder}, "reranker": {}}
    settings.SHARED_MODELS = False
    collection = create_collection(workspace=alice.workspace, name="Notes")
    sources = [text_source(key, text) for key, text in TEXTS.items()]
    ingest_inline(collection=collection, sources=sources)
    return collection


def test_a_question_in_another_language_is_told_so_with_the_cure(
    alice: Membership, settings: Any, api: APIClient
) -> None:
    filled(alice, settings, BACKEND=HASHING, LANGUAGES=["en"])
    scope = site_scope(workspace=alice.workspace)

    def notes(question: str, **options: Any) -> str:
        return " ".join(search(question, scope=scope, **options).notes)

    german = notes("Wer frisst den Krill?")
    assert "seems to be in German, which hashing-384, the model of “Notes”, was not" in german
    assert "No model for that is configured" in german
    assert "in Chinese" in notes("谁吃磷虾？")
    assert "in Russian" in notes("Кто ест криль?")
    for question in ("Who eats krill?", "krill", "Masern Impfung"):
        assert "seems to be" not in notes(question)
    assert "seems to be" not in notes("Wer frisst den Krill?", mode="lexical")
    settings.INFERENCE["embedder"]["many"] = {
        "BACKEND": HASHING,
        "OPTIONS": {"dimensions": 768},
        "LANGUAGES": ["*"],
    }
    answer = api.get("/api/v1/search/", {"q": "Wer frisst den Krill?"})
    assert "reembed --to hashing-768-768 --collection notes`" in answer.json()["notes"][-1]


#: The document that answers each.
QUESTIONS = {
    "Was frisst der Blauwal?": "whale",
    "How many strings does the instrument have?": "guitarra",
    "What protects children from measles?": "impfung",
    "哪种动物最大？": "whale",
    "Когда принимают бюджет?": "parliament",
    "¿Quién aprueba los presupuestos?": "parliament",
}


@pytest.mark.model
def test_questions_find_documents_in_other_languages(alice: Membership, settings: Any) -> None:
    filled(alice, settings, **MULTILINGUAL)
    scope = site_scope(workspace=alice.workspace)
    results = {question: search(question, scope=scope) for question in QUESTIONS}
    first = {question: result.hits[0].document_key for question, result in results.items()}
    assert first == QUESTIONS
    assert not any("seems to be" in note for each in results.values() for note in each.notes)
