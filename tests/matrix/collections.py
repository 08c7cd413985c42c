"""Collections: listed, read, empty, being filled, changed, deleted; and the end of a document."""

from documents.models import Collection, Document
from documents.services import delete_collection
from documents.tests.factories import CollectionFactory, DocumentFactory, RunFactory
from tests.matrix.states import State, World

LONG = "Protokolle-der-Hafenmeisterei-" * 6


def _at(world: World, more: str = "") -> str:
    return f"/documents/{world.leaflets.slug}/{more}"


def _filling(world: World) -> None:
    """One document waits, one is worked on, one failed."""
    for status in (Document.Status.QUEUED, Document.Status.PROCESSING):
        DocumentFactory(collection=world.leaflets, status=status)
    DocumentFactory(
        collection=world.leaflets,
        title=LONG,
        status=Document.Status.FAILED,
        error="The file is encrypted. Remove the password, and bring it again.",
    )
    RunFactory(collection=world.leaflets, total=3, failed=1)


def _long(world: World) -> None:
    CollectionFactory(workspace=world.workspace, slug="long", name=LONG[:200], description=LONG)


def _in_another_language(world: World) -> None:
    """A German document under a model for English, and a model for both."""
    DocumentFactory(collection=world.office, title="Hafenordnung", language="de")
    default = world.settings.INFERENCE["embedder"]["default"]
    models = {"default": {**default, "LANGUAGES": ["en"]}, "many": {**default, "LANGUAGES": ["*"]}}
    world.settings.INFERENCE = {**world.settings.INFERENCE, "embedder": models}


def _none(world: World) -> None:
    for collection in Collection.objects.filter(workspace=world.workspace):
        delete_collection(collection=collection)


STATES = [
    State("long-names", lambda world: "/documents/", "h1", prepare=_long),
    State("filling", _at, "h1", prepare=_filling),
    State(
        "other-language",
        lambda world: f"/documents/{world.office.slug}/",
        ".note.languages button",
        prepare=_in_another_language,
    ),
    State("empty", lambda world: f"/documents/{world.empty.slug}/", "h1"),
    State("change", lambda world: _at(world, "change/"), "form"),
    State("delete", lambda world: _at(world, "delete/"), "form"),
    State("document-delete", lambda world: _at(world, f"{world.leaflet.pk}/delete/"), "form"),
    State("none", lambda world: "/documents/", "h1", prepare=_none),
]
