"""The admin: every model of ours is there, every page works, and nothing heavy is read."""

import html
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.db import connection, models
from django.test.utils import CaptureQueriesContext

from accounts.audit import Action, Channel, Kind, acting, record_change
from documents.models import Chunk, Collection, Document, LexicalSegment
from documents.tests.factories import DocumentFactory, RunFactory, UserFactory
from search.models import SearchLog
from tests.access.world import LISTED, MEMORY, OWN, SHARED, World, make_world
from tests.kit import logged_in, page_of

pytestmark = pytest.mark.django_db
OUR_APPS = (
    "accounts",
    "model_servers",
    "documents",
    "sources",
    "memory",
    "graph",
    "search",
    "rag",
    "dashboard",
)
#: What a reader must find on the model's list.
TOLD: dict[str, list[str]] = {
    "change": ["changed document", "graph: rules → llm", "person"],
    "apikey": [f"Key {OWN}", "owner"],
    "identity": [OWN, "https://firm.example", "owner"],
    "secondfactor": [OWN, "owner"],
    "loginsession": [OWN, "owner"],
    "workspacegroup": [f"Group {SHARED}", f"Alder {SHARED}"],
    "groupmember": [f"Group {SHARED}", "owner"],
    "invitation": ["Viewer", f"Alder {SHARED}"],
    "conversation": ["Conversation", "owner"],
    "message": ["Assistant", f"Alder {SHARED}"],
    "pipeline": [f"Plan {SHARED}", "plan"],
    "databaseconnection": [f"Shop {SHARED}", f"reader-{SHARED}"],
    "trace": ["plan", "Running"],
    "span": ["retriever", "Node"],
    "summary": ["Summary", "Done"],
    "modelconnection": [f"Model {SHARED}", f"model-{SHARED}", f"Alder {SHARED}"],
    "workspacemodel": [f"Model {SHARED}", f"Alder {SHARED}"],
    "modelusage": [f"model-{SHARED}", "Answers", "900"],
    "datasource": [f"Cloud {SHARED}", "folder"],
    "datasourceitem": [f"Cloud {SHARED}", "3"],
    "datasourcerun": [f"Cloud {SHARED}", "Failed"],
    "datasourcenotice": [f"Cloud {SHARED}", "late"],
    "user": ["viewer", "owner"],
    "workspace": [f"Alder {SHARED}"],
    "membership": ["owner", "Viewer"],
    "collection": [f"Notes {SHARED}", "minilm-384"],
    "document": [f"Of {LISTED}", "Failed", "Remove the password"],
    "stageddocument": [f"Of {LISTED}", "1\xa0byte"],
    "stagedvectors": [f"Of {LISTED}", "minilm-384"],
    "scannedpage": [f"Of {LISTED}", "PP-OCRv6"],
    "chunkedit": [f"Of {LISTED}", "Applied", "owner"],
    "chunk": [f"The warden keeps the keys of {LISTED}.", f"Of {LISTED}"],
    "embeddingspace": ["minilm-384", "384"],
    "reembedding": ["everything into minilm-384", "0 of 0 chunks (100 %)"],
    "ingestionrun": ["three files", "1 of 3, 1 failed"],
    "ingestionitem": [f"{LISTED}.md", f"No {LISTED}", f"Folder {SHARED}"],
    "idempotencyrecord": [f"k {OWN}", "owner"],
    "lexicalsegment": [f"Notes {SHARED}", "english", "Select search index segment to view"],
    "judgement": [f"Which {SHARED}?", "Pinned", f"Of {SHARED}", f"Notes {SHARED}"],
    "context": [f"My town is {MEMORY}", "user:", f"Alder {SHARED}"],
    "fact": ["town", f"The town {MEMORY}", "user:"],
    "extractionitem": [MEMORY, "user:", "Given up", f"Not {MEMORY}"],
    "pruning": ["user:", "the user&#x27;s quota", "9\xa0bytes"],
    "node": [f"Gate {LISTED}", "src:wall", "found in documents", f"The gate {SHARED}"],
    "edge": [f"The gate {SHARED}", "NEEDS", f"The wall {SHARED}", "given by a person"],
    "alias": ["wall", f"The wall {SHARED}"],
    "extraction": [f"Of {LISTED}", "waiting", f"No {LISTED}"],
    "savedsearch": [f"Of {OWN}", f"q={OWN}", "owner"],
    "evaluation": ["Evaluation ", f"Notes {SHARED}", "Failed"],
    "evaluatedquestion": [f"Which {SHARED}?", "1.0"],
    "sample": [f"Alder {SHARED}"],
    "searchlog": ["Judge the answers", "1 ms", "nothing"],
}


def our_models() -> Iterator[type[models.Model]]:
    for label in OUR_APPS:
        for model in apps.get_app_config(label).get_models():
            # Rows without a number of their own are shown with what they belong to.
            shared = (models.CompositePrimaryKey, models.OneToOneField)
            is_numbered = not isinstance(model._meta.pk, shared)
            if is_numbered and not model._meta.auto_created:
                yield model


@pytest.fixture
def world(media_root: Path, tmp_path: Path) -> World:
    """With a document and a run that failed, and a change with values."""
    world = make_world(directory=tmp_path)
    collection = Collection.objects.get(slug=world.ids["collection"])
    DocumentFactory(
        collection=collection, status="failed", error="It is encrypted. Remove the password."
    )
    RunFactory(collection=collection, source="three files", total=3, failed=1)
    SearchLog.objects.update(collections=[collection.pk])
    with acting(channel=Channel.PAGE, user=UserFactory(username="person")):
        record_change(
            action=Action.CHANGED,
            kind=Kind.DOCUMENT,
            workspace_id=world.a.pk,
            object_id=world.ids["document"],
            values={"graph": (Collection.Graph.RULES, Collection.Graph.LLM)},
        )
    return world


def test_every_model_of_ours_is_in_the_admin() -> None:
    import_module(settings.ROOT_URLCONF)  # finds the admin modules
    missing = [model for model in our_models() if not admin.site.is_registered(model)]
    assert not missing


@pytest.mark.nightly
def test_every_list_and_row_has_a_page_that_is_searched_narrowed_and_read_lightly(
    world: World,
) -> None:
    client, missing = logged_in(UserFactory(is_superuser=True)), []
    for model in our_models():
        name = str(model._meta.model_name)
        with CaptureQueriesContext(connection) as captured:
            listed = client.get(page_of(model))
        assert listed.status_code == 200, name
        missing += [(name, words) for words in TOLD[name] if words not in listed.content.decode()]
        row = model._base_manager.get(pk=world.ids[model._meta.label_lower])
        shown = client.get(page_of(row, "change"))
        assert shown.status_code == 200, name
        assert str(row) in html.unescape(shown.content.decode()), name
        for page in (listed, shown):
            for leaked in ("&lt;a ", "(&#x27;", "{&#x27;", "object at 0x"):
                assert leaked not in page.content.decode(), (name, leaked)
        if model._meta.app_label in ("documents", "memory", "graph"):
            read_no_heavy_columns(model, [each["sql"] for each in captured])
        if name != "span":  # of a million, by nothing that an index knows
            for words in ('no-such "thing" \\ % \' \x00', "no-such-thing"):
                found = client.get(page_of(model), {"q": words})
                assert found.status_code == 200, name
            assert found.context["cl"].result_count == 0, name
    assert not missing
    collection = world.ids["documents.collection"]
    for model in (Document, Chunk, LexicalSegment):
        for pk, is_found in ((collection, True), (collection + 100, False)):
            found = client.get(page_of(model), {"collection__id__exact": pk})
            assert bool(found.context["cl"].result_count) is is_found, model
    unknown = client.get(page_of(Chunk), {"language__exact": "klingon"}).context["cl"]
    assert unknown.result_count == 0


def read_no_heavy_columns(model: type[models.Model], queries: list[str]) -> None:
    """Neither vectors nor payloads, and no count of all rows of a table."""
    payload_size = 'octet_length("documents_stageddocument"."payload")'
    for query in (each for each in queries if f'"{model._meta.db_table}"' in each):
        selected = query.split(" FROM ")[0].replace(payload_size, "")
        for column in ('"search_vector"', '"payload"', '."embedding",'):
            assert column not in selected, query
        if "COUNT(" in selected:
            assert "LIMIT" in query, query
