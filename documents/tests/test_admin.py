"""The admin: every model of ours is there, every page works, and nothing heavy is read."""

import html
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import idempotency
from accounts.api_keys import create_key
from accounts.audit import Action, Channel, Kind, acting, record_change
from accounts.groups import add_members, create_group
from accounts.invitations import create_invitation
from accounts.models import (
    Change,
    GroupMember,
    IdempotencyRecord,
    Identity,
    LoginSession,
    Membership,
    SecondFactor,
)
from accounts.sessions import SessionStore
from common import admin as common_admin
from documents import lexical_index
from documents.models import (
    Chunk,
    ChunkEdit,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
    Lexeme,
    LexicalSegment,
    Posting,
    Reembedding,
    ScannedPage,
    StagedDocument,
)
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
)
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
OUR_APPS = ("accounts", "documents", "sources", "memory", "graph", "search", "rag", "dashboard")


def our_models() -> Iterator[type[models.Model]]:
    for label in OUR_APPS:
        for model in apps.get_app_config(label).get_models():
            # Rows without a number of their own are shown with what they belong to.
            shared = (models.CompositePrimaryKey, models.OneToOneField)
            is_numbered = not isinstance(model._meta.pk, shared)
            if is_numbered and not model._meta.auto_created:
                yield model


def page_of(model: type[models.Model] | models.Model, page: str = "changelist") -> str:
    meta = model._meta
    args = [model.pk] if isinstance(model, models.Model) else []
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{page}", args=args)


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(is_superuser=True))


@pytest.fixture
def rows() -> dict[type[models.Model], models.Model]:
    """A row of each model, and one with an error where there can be one."""
    member = MembershipFactory()
    collection = CollectionFactory(workspace=member.workspace, name="Package leaflets")
    document = DocumentFactory(collection=collection, title="Aripiprazole")
    chunk = ChunkFactory(document=document, text="Nausea is common.", metadata={"year": 2025})
    DocumentFactory(
        collection=collection,
        title="Locked",
        status=Document.Status.FAILED,
        error_code="encrypted",
        error="The file is encrypted. Remove the password.",
    )
    run = RunFactory(
        collection=collection, user=member.user, source="three files", total=3, failed=1
    )
    item = ItemFactory(
        run=run,
        name="locked.pdf",
        document=document,
        state=IngestionItem.State.FAILED,
        error_code="encrypted",
        error="The file is encrypted. Remove the password.",
    )
    edit = ChunkEdit.objects.create(
        workspace=member.workspace,
        document=document,
        chunk=chunk.pk,
        start=0,
        before="Nausea is rare.",
        after="Nausea is common.",
        user=member.user,
    )
    staged = StagedDocument.objects.create(
        workspace=member.workspace, document=document, payload=b"x" * 2048
    )
    scanned = ScannedPage.objects.create(
        workspace=member.workspace,
        document=document,
        source_sha256="0" * 64,
        page=4711,
        engine="PP-OCRv6",
        text="Nausea",
        confidence=0.9,
    )
    lexical_index.index_pending(collection.pk)
    everything: list[Any] = [member.user, member.workspace, member, collection, document, chunk]
    everything += [run, item, edit, staged, scanned, EmbeddingSpace.objects.get()]
    everything += [Reembedding.objects.create(target=EmbeddingSpace.objects.get(), total=7, done=3)]
    everything += [LexicalSegment.objects.get()]
    idempotency.claim_or_replay(
        user=member.user, workspace=member.workspace, key="nightly-upload", fingerprint="0"
    )
    everything += [IdempotencyRecord.objects.get()]
    group = create_group(workspace=member.workspace, name="Pharmacists")
    add_members(group=group, memberships=[member])
    everything += [group, GroupMember.objects.get()]
    invitation, _ = create_invitation(
        workspace=member.workspace, user=member.user, email="new@example.org"
    )
    everything += [invitation]
    everything += search_rows(document, member)
    everything += source_rows(document)
    everything += memory_rows(member.workspace)
    everything += graph_rows(document, chunk)
    everything += rag_rows(member)
    everything += sign_in_rows(member)
    everything += [
        apps.get_model("dashboard", "Sample").objects.create(
            workspace=member.workspace, at=timezone.now(), documents=4711
        )
    ]
    with acting(channel=Channel.PAGE, user=member.user):
        record_change(
            action=Action.CHANGED,
            kind=Kind.DOCUMENT,
            workspace_id=member.workspace_id,
            object_id=document.pk,
            values={"graph": (Collection.Graph.RULES, Collection.Graph.LLM)},
        )
    everything += [Change.objects.latest("pk")]
    everything += [
        create_key(
            user=member.user, workspace=member.workspace, name="nightly import", scopes=["read"]
        )[0]
    ]
    return {type(row): row for row in everything}


def sign_in_rows(member: Membership) -> list[models.Model]:
    """How a person comes in."""
    own = {"user": member.user}
    session = SessionStore()
    session.create()
    return [
        Identity.objects.create(
            **own, method="oidc", issuer="https://firm.example", subject="4711"
        ),
        SecondFactor.objects.create(**own, kind="passkey", name="blue stick"),
        LoginSession.objects.create(
            **own, session_id=session.session_key, method="password", address="192.0.2.7"
        ),
    ]


def search_rows(document: Document, member: Membership) -> list[models.Model]:
    """Rows of an app that this one must not know."""
    owner = {"workspace": document.workspace}
    judgement = apps.get_model("search", "Judgement").objects.create(
        **owner, collection=document.collection, document=document, question="nausea?", grade=1
    )
    asked = apps.get_model("search", "SearchLog").objects.create(
        **owner,
        query="is nausea common?",
        mode="hybrid",
        collections=[document.collection_id],
        documents=[document.pk],
        total=7,
        milliseconds=12.3,
        source="web",
    )
    kept = apps.get_model("search", "SavedSearch").objects.create(
        **owner, user=member.user, name="Nausea", parameters="q=nausea&mode=lexical"
    )
    evaluation = apps.get_model("search", "Evaluation").objects.create(
        **owner, collection=document.collection, state="done", questions=1, ndcg=0.75
    )
    evaluated = apps.get_model("search", "EvaluatedQuestion").objects.create(
        **owner,
        evaluation=evaluation,
        question_sha256=judgement.question_sha256,
        ndcg=0.75,
        recall=1,
        first_rank=2,
        good=1,
        found=1,
    )
    return [judgement, asked, kept, evaluation, evaluated]


def source_rows(document: Document) -> list[models.Model]:
    """Rows of an app that this one must not know."""
    owner = {"workspace": document.workspace}
    source = apps.get_model("sources", "DataSource").objects.create(
        **owner, collection=document.collection, name="Team", connector="folder"
    )
    return [
        source,
        apps.get_model("sources", "DataSourceItem").objects.create(
            **owner, source=source, key="leave.md", name="leave.md", version="1"
        ),
        apps.get_model("sources", "DataSourceRun").objects.create(**owner, source=source),
        apps.get_model("sources", "DataSourceNotice").objects.create(
            **owner, source=source, problem="late", since=document.created_at
        ),
    ]


def memory_rows(workspace: models.Model) -> list[models.Model]:
    """Rows of an app that this one must not know."""
    owner = {"workspace": workspace, "user_id": "alice"}
    context = apps.get_model("memory", "Context").objects.create(
        **owner, user_message="Call me Al.", content_sha256="0"
    )
    return [
        context,
        apps.get_model("memory", "Fact").objects.create(
            **owner, key="name", value="Al", source=context
        ),
        apps.get_model("memory", "ExtractionItem").objects.create(
            **owner, key="chat 7", state="dead", error="No reply could be read.", attempts=5
        ),
        apps.get_model("memory", "Pruning").objects.create(
            **owner, reason="user", rows=12, bytes=3072, until=context.created_at
        ),
    ]


def graph_rows(document: Document, chunk: Chunk) -> list[models.Model]:
    """Rows of an app that this one must not know."""
    owner = {"workspace": document.workspace}

    def make(model: str, /, **fields: Any) -> Any:
        return apps.get_model("graph", model).objects.create(**owner, **fields)

    nausea = make("Node", key="ent:term:nausea", name="Nausea", labels=["Term"], origin="extracted")
    drug = make("Node", key="src:drugs:17", name="Abilify")
    make("Mention", chunk=chunk, node=nausea, start=0, end=6)
    edge = make("Edge", source=drug, rel="CAUSES", target=nausea, weight=2.5)
    make("Evidence", chunk=chunk, edge=edge, start=0, end=17)
    reading = make(
        "Extraction",
        collection=document.collection,
        document=document,
        state="dead",
        error="No reply could be read.",
    )
    return [drug, nausea, edge, make("Alias", node=nausea, form="queasiness"), reading]


#: What of the rows above a reader must find on the model's list.
def rag_rows(member: Membership) -> list[models.Model]:
    """Rows of an app that this one must not know."""
    owner = {"workspace": member.workspace}
    now = timezone.now()

    def make(model: str, /, **fields: Any) -> Any:
        return apps.get_model("rag", model).objects.create(**owner, **fields)

    talk = make("Conversation", user=member.user, title="is nausea common?")
    trace = make("Trace", user=member.user, pipeline="research", state="failed", started_at=now)
    return [
        talk,
        make("Message", conversation=talk, role="assistant", content="Yes.", model="llama"),
        make("Pipeline", slug="mine", name="My own", definition={}),
        trace,
        make(
            "Span",
            trace=trace,
            ordinal=0,
            kind="tool",
            node="retriever",
            type="similarity_search",
            started_at=now,
            ended_at=now,
        ),
        make("Summary", fingerprint="0", kind="summary", model="llama", passage_count=4711),
    ]


TOLD: dict[str, list[str]] = {
    "change": ["changed document", "graph: rules → llm", "person"],
    "apikey": ["nightly import", "person"],
    "identity": ["4711", "https://firm.example", "person"],
    "secondfactor": ["blue stick", "person"],
    "loginsession": ["192.0.2.7", "person"],
    "workspacegroup": ["Pharmacists", "Workspace"],
    "groupmember": ["Pharmacists", "owner"],
    "invitation": ["new@example.org", "Viewer"],
    "conversation": ["Conversation", "person"],
    "message": ["assistant", "llama"],
    "pipeline": ["My own", "mine"],
    "trace": ["research", "failed"],
    "span": ["similarity_search", "tool call"],
    "summary": ["llama", "4711"],
    "datasource": ["Team", "folder"],
    "datasourceitem": ["Team"],
    "datasourcerun": ["Team", "Listing"],
    "datasourcenotice": ["Team", "late"],
    "user": ["person"],
    "workspace": ["Workspace"],
    "membership": ["owner"],
    "collection": ["Package leaflets", "minilm-384"],
    "document": ["Aripiprazole", "Failed", "Remove the password"],
    "stageddocument": ["Aripiprazole", "2.0"],
    "scannedpage": ["Aripiprazole", "4711"],
    "chunkedit": ["Aripiprazole", "Applied", "person"],
    "chunk": ["Nausea is common.", "Aripiprazole"],
    "embeddingspace": ["minilm-384", "384"],
    "reembedding": ["everything into minilm-384", "3 of 7 chunks (43 %)"],
    "ingestionrun": ["three files", "1 of 3, 1 failed"],
    "ingestionitem": ["locked.pdf", "Remove the password", "three files"],
    "idempotencyrecord": ["nightly-upload", "person"],
    "lexicalsegment": ["Package leaflets", "english", "Select search index segment to view"],
    "judgement": ["nausea?", "Good", "Aripiprazole", "Package leaflets"],
    "context": ["Call me Al.", "alice", "Workspace"],
    "fact": ["name", "Al", "alice"],
    "extractionitem": ["chat 7", "alice", "Given up", "No reply could be read."],
    "pruning": ["alice", "the user&#x27;s quota", "12", "3.0"],
    "node": ["Nausea", "ent:term:nausea", "Term", "found in documents", "Abilify"],
    "edge": ["Abilify", "CAUSES", "Nausea", "2.5", "given by a person"],
    "alias": ["queasiness", "Nausea"],
    "extraction": ["Aripiprazole", "given up", "No reply could be read."],
    "savedsearch": ["Nausea", "q=nausea&amp;mode=lexical", "person"],
    "evaluation": ["Evaluation ", "Package leaflets", "Done", "0.75"],
    "evaluatedquestion": ["nausea?", "0.75"],
    "sample": ["4711", "Workspace"],
    "searchlog": ["is nausea common?", "Judge the answers", "12 ms"],
}


def test_every_model_of_ours_is_in_the_admin() -> None:
    import_module(settings.ROOT_URLCONF)  # finds the admin modules
    missing = [model for model in our_models() if not admin.site.is_registered(model)]
    assert not missing


@pytest.mark.nightly
def test_every_list_and_row_has_a_page_that_is_searched_narrowed_and_read_lightly(
    client: Client, rows: dict[type[models.Model], models.Model]
) -> None:
    for model in our_models():
        name = str(model._meta.model_name)
        with CaptureQueriesContext(connection) as captured:
            listed = client.get(page_of(model))
        assert listed.status_code == 200, name
        for words in TOLD[name]:
            assert words in listed.content.decode(), (name, words)
        shown = client.get(page_of(rows[model], "change"))
        assert shown.status_code == 200, name
        assert str(rows[model]) in html.unescape(shown.content.decode()), name
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

    collection = rows[Collection]
    for model in (Document, Chunk, LexicalSegment):
        for pk, is_found in ((collection.pk, True), (collection.pk + 1, False)):
            found = client.get(page_of(model), {"collection__id__exact": pk})
            assert bool(found.context["cl"].result_count) is is_found, model
    unknown = client.get(page_of(Chunk), {"language__exact": "klingon"}).context["cl"]
    assert unknown.result_count == 0


def read_no_heavy_columns(model: type[models.Model], queries: list[str]) -> None:
    """Nor count a table of any size."""
    payload_size = 'octet_length("documents_stageddocument"."payload")'
    for query in (each for each in queries if f'"{model._meta.db_table}"' in each):
        selected = query.split(" FROM ")[0].replace(payload_size, "")
        for column in ('"search_vector"', '"payload"', '."embedding",'):
            assert column not in selected, query
        if "COUNT(" in selected:
            assert "LIMIT" in query, query


def test_rows_that_the_site_writes_are_not_added_by_hand(client: Client) -> None:
    by_hand = {"user", "workspace", "membership", "collection", "embeddingspace", "judgement"}
    by_hand |= {"node", "edge", "alias"}
    for model in our_models():
        expected = 200 if model._meta.model_name in by_hand else 403
        assert client.get(page_of(model, "add")).status_code == expected, model


# --- speed -------------------------------------------------------------------------------------


def test_a_chunk_shows_its_text_and_never_its_vector(
    client: Client, rows: dict[type[models.Model], models.Model]
) -> None:
    with CaptureQueriesContext(connection) as captured:
        page = client.get(page_of(rows[Chunk], "change")).content.decode()
    assert "Nausea is common." in page
    assert "2025" in page
    assert page_of(rows[Document], "change") in page
    assert not [each for each in captured if '."embedding",' in each["sql"]]


def test_a_chunk_is_changed_by_the_service_and_nothing_typed_is_lost(
    client: Client, rows: dict[type[models.Model], models.Model]
) -> None:
    chunk = Chunk.objects.get(pk=rows[Chunk].pk)
    page = page_of(chunk, "change")
    body = {"text": "Nausea is very common.", "expected": chunk.content_sha256}
    assert client.post(page, body).status_code == 302
    changed = Chunk.objects.get(pk=chunk.pk)
    assert changed.text == "Nausea is very common."
    assert changed.content_sha256 != chunk.content_sha256
    assert ChunkEdit.objects.filter(chunk=chunk.pk, after=changed.text).count() == 1
    late = client.post(page, {**body, "text": "Something typed late."})
    assert late.status_code == 200
    assert "Somebody changed this passage meanwhile" in html.unescape(late.content.decode())
    assert "Something typed late." in late.content.decode()
    edit = ChunkEdit.objects.get(chunk=chunk.pk, after=changed.text)
    undo = {"action": "undo", "_selected_action": [edit.pk]}
    client.post(page_of(ChunkEdit), undo)
    assert Chunk.objects.get(pk=chunk.pk).text == "Nausea is common."
    log = LogEntry.objects.filter(content_type__model="chunk")
    assert [entry.object_repr for entry in log] == [f"chunk {chunk.pk}"]


def test_twenty_rows_cost_as_many_queries_as_two(
    client: Client, rows: dict[type[models.Model], models.Model]
) -> None:
    def queries(url: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        return len(captured)

    shown = [Collection, Document, Chunk, IngestionItem]
    before = [queries(page_of(model)) for model in shown]
    for _ in range(20):
        document = DocumentFactory(collection=CollectionFactory())
        ChunkFactory(document=document)
        ItemFactory(document=document, run=RunFactory(collection=document.collection))
    assert [queries(page_of(model)) for model in shown] == before


def test_a_large_table_is_estimated_and_a_large_selection_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common_admin, "COUNTED_ROWS", 10)
    collection = CollectionFactory()
    LexicalSegment.objects.bulk_create(
        LexicalSegment(
            workspace=collection.workspace,
            collection=collection,
            language="simple",
            is_current=True,
            chunk_count=number,
            wordless_count=0,
            total_length=0,
        )
        for number in range(30)
    )

    def count(rows: models.QuerySet[Any]) -> int:
        return common_admin.EstimatedPaginator(rows.order_by("-id"), 50).count

    everything = LexicalSegment.objects.order_by("-id")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE documents_lexicalsegment")
    assert count(everything) == 30
    assert count(everything.filter(chunk_count__gt=10)) == 10
    assert count(everything.filter(chunk_count=1)) == 1
    assert count(everything.none()) == 0

    last = common_admin.EstimatedPaginator(everything, 7).page(5)
    assert list(last) == list(everything)[28:]
    assert not last.has_next()


def test_a_table_that_was_never_analysed_still_has_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate that is too low must not turn paging off and load the whole table."""
    monkeypatch.setattr(common_admin, "COUNTED_ROWS", 10)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = -1 WHERE oid = 'documents_document'::regclass"
        )
    collection = CollectionFactory()
    for _ in range(12):
        DocumentFactory(collection=collection)
    assert common_admin.EstimatedPaginator(Document.objects.order_by("id"), 5).count == 11


# --- finding -----------------------------------------------------------------------------------


def test_chunks_are_found_by_words_in_their_language(client: Client) -> None:
    document = DocumentFactory()
    english = ChunkFactory(document=document, text="Many children were running.")
    german = ChunkFactory(document=document, text="Viele Häuser brannten.", language="german")

    def found(words: str) -> list[int]:
        rows = client.get(page_of(Chunk), {"q": words}).context["cl"].result_list
        return sorted(chunk.pk for chunk in rows)

    assert found("run children") == [english.pk]
    assert found("Haus") == [german.pk]
    assert found('"running children"') == []
    assert found("children -running") == []


# --- writing -----------------------------------------------------------------------------------


def test_a_collection_is_made_by_the_service(client: Client) -> None:
    member: Membership = MembershipFactory()
    form = {
        "workspace": member.workspace.pk,
        "name": "Leaflets",
        "slug": "Leaf-Lets",
        "description": "",
        "default_language": "de",
        "chunker": "recursive",
        "chunker_options": "max_tokens=200",
        "graph": "off",
    }
    assert client.post(page_of(Collection, "add"), form).status_code == 302
    made = Collection.objects.get()
    assert (made.slug, made.default_language, made.chunker) == ("leaf-lets", "de", "recursive")
    assert made.chunker_options == {"max_tokens": 200}
    assert made.graph == "off"
    assert made.space.name == "minilm-384"
    assert LogEntry.objects.get().object_id == str(made.pk)

    again = client.post(page_of(Collection, "add"), form)
    assert again.status_code == 200
    assert again.context["errors"]


def test_a_collection_is_changed_and_its_address_and_space_stay(client: Client) -> None:
    collection = CollectionFactory()
    form = {
        "name": "New",
        "description": "Text",
        "default_language": "fr",
        "slug": "other",
        "chunker": "window",
        "chunker_options": "size=900",
        "graph": "llm",
    }
    refused = client.post(page_of(collection, "change"), form)
    assert "size may be 1 to 100" in refused.content.decode()
    form["chunker_options"] = "size=4 step=2"
    assert client.post(page_of(collection, "change"), form).status_code == 302
    changed = Collection.objects.get()
    assert (changed.name, changed.default_language) == ("New", "fr")
    assert (changed.chunker, changed.chunker_options) == ("window", {"size": 4, "step": 2})
    assert changed.graph == "llm"
    assert (changed.slug, changed.space) == (collection.slug, collection.space)


def test_a_collection_says_what_it_learnt_and_how_to_forget_it(client: Client) -> None:
    collection = CollectionFactory(slug="leaflets")
    url = page_of(collection, "change")
    assert "--judgements --tune" in client.get(url).content.decode()
    collection.tuning = {
        "lexical": 0.3,
        "pull": 0.25,
        "questions": 120,
        "ndcg_default": 0.81,
        "ndcg_tuned": 0.84,
        "space": collection.space_id,
    }
    collection.save()
    page = client.get(url).content.decode()
    assert "Words 0.30, meaning 0.70; learnt from 120 judged questions" in page
    assert "0.810 → 0.840" in page
    assert "--collection leaflets --forget" in page
    collection.tuning["space"] += 1
    collection.save()
    assert "learnt with another model" in client.get(url).content.decode()


@pytest.fixture
def stored() -> Document:
    """A document with a stored file, a chunk and word counts."""
    from django.core.files.base import ContentFile

    document = DocumentFactory()
    document.file.save("1", ContentFile(b"text"), save=True)
    ChunkFactory(document=document, text="unicorn")
    lexical_index.index_pending(document.collection_id)
    return document


@pytest.mark.parametrize("how", ["page", "action"])
@pytest.mark.parametrize("what", [Document, Collection])
def test_deleting_leaves_neither_chunks_nor_files_nor_words(
    client: Client,
    stored: Document,
    what: type[models.Model],
    how: str,
    django_capture_on_commit_callbacks: Any,
) -> None:
    row = stored if what is Document else stored.collection
    url = page_of(row, "delete") if how == "page" else page_of(what)
    form: dict[str, Any] = {"post": "yes"}
    if how == "action":
        form |= {"action": "delete_selected", "_selected_action": [row.pk]}
    preview = client.post(url, {name: form[name] for name in form if name != "post"})
    if how == "page":
        preview = client.get(url)
    assert "Chunks: 1" in preview.content.decode()

    storage, name = stored.file.storage, stored.file.name
    assert storage.exists(name)
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(url, form).status_code == 302
    assert not what.objects.exists()
    assert not Chunk.objects.exists()
    for model in (Posting, Lexeme):
        assert not model.objects.filter(lexeme="unicorn").exists()
    assert not storage.exists(name)


def test_a_workspace_with_collections_is_not_deleted_by_a_click(client: Client) -> None:
    collection = CollectionFactory()
    url = page_of(collection.workspace, "delete")
    assert client.post(url, {"post": "yes"}).status_code == 403
    assert Collection.objects.exists()


@pytest.mark.parametrize(
    ("action", "told"), [("cancel", "is cancelled"), ("retry", "has failed. Nothing is left")]
)
def test_runs_are_cancelled_and_retried_in_the_list(client: Client, action: str, told: str) -> None:
    run = RunFactory()
    form = {"action": action, "_selected_action": [run.pk]}
    answer = client.post(page_of(IngestionRun), form, follow=True)
    assert told in html.unescape(answer.content.decode())
    run.refresh_from_db()
    assert run.state == ("cancelled" if action == "cancel" else "running")


def test_what_searches_look_at_of_an_index_is_changed_in_the_admin(client: Client) -> None:
    space = EmbeddingSpace.objects.get()
    page = page_of(space, "change")
    shown = client.get(page).content.decode()
    assert 'name="ef_search"' in shown
    assert 'name="probes"' not in shown
    assert client.post(page, {"query_instruction": "", "ef_search": "300"}).status_code == 302
    space.refresh_from_db()
    assert space.index_options["ef_search"] == 300
    refused = client.post(page, {"query_instruction": "", "ef_search": "1001"})
    assert "less than or equal to 1000" in refused.content.decode()
    assert client.post(page, {"query_instruction": "", "ef_search": ""}).status_code == 302
    space.refresh_from_db()
    assert "ef_search" not in space.index_options
