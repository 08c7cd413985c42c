"""A workspace with one of everything: whoever adds a table adds a row here."""

import hashlib
from io import BytesIO
from typing import Any

from django.core.files.base import ContentFile
from django.db.models import Model
from django.utils import timezone
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from accounts.models import Membership
from dashboard.models import Sample
from documents import lexical_index
from documents.models import (
    Chunk,
    ChunkEdit,
    ChunkTokens,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    LexicalSegment,
    ScannedPage,
    StagedDocument,
    StagedVectors,
)
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    RunFactory,
)
from graph.models import Alias, Extraction
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node
from model_servers.models import ModelConnection, ModelUsage, WorkspaceModel
from rag.models import DatabaseConnection, Summary
from rag.services.summaries import get_summary
from rag.tools.summaries import document_text_of
from sources.models import DataSource, DataSourceItem, DataSourceNotice, DataSourceRun
from tables.models import ColumnBlock, GroupColumn, Table, TableGroup, TableLayout
from tables.plan_tokens import plan_token
from tables.questions.plan import Plan
from tests.access.filling_own import Words, chats, judged, kept, memory, ways_in

#: Where the words of a page are on it.
BOX = [0.1, 0.2, 0.8, 0.3]


def fill(
    owner: Membership, listed: list[str], words: Words, slug: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What fills the braces of doors: with the document that has an access list, and with that
    which all members read. `slug` is the collection's, and begins the names of other things."""
    collection = CollectionFactory(
        workspace=owner.workspace,
        slug=slug,
        name=f"Notes {words.shared}",
        description=f"All of {words.shared}",
    )
    ids: dict[str, Any] = {"collection": slug, "documents.collection": collection.pk}
    open_ids = _document(owner, collection, "open.md", words.shared, None)
    ids |= _document(owner, collection, "private.md", words.listed, listed)
    chunk, common = Chunk.objects.get(pk=ids["chunk"]), Chunk.objects.get(pk=open_ids["chunk"])
    ids |= _runs(collection, common.document, words)
    ids |= _source(collection, listed, words)
    ids |= _models(owner, words)
    ids |= _database(collection, words)
    ids |= _graph(chunk, common, words)
    ids |= memory(owner, words, slug)
    ids |= chats(owner, words, slug)
    ids |= judged(owner, collection, common, words)
    ids |= kept(owner, words)
    ids |= ways_in(owner, words)
    sample = Sample.objects.create(workspace=owner.workspace, at=timezone.now(), documents=2)
    ids["dashboard.sample"] = sample.pk
    return ids, ids | open_ids


def _document(
    owner: Membership, collection: Collection, key: str, word: str, access: list[str] | None
) -> dict[str, Any]:
    picture = _picture(word)
    document = DocumentFactory(
        collection=collection,
        key=key,
        title=f"Of {word}",
        source=f"{key} {word}",
        media_type="image/png",
        source_sha256=hashlib.sha256(picture).hexdigest(),
        access=access,
        metadata={"author": f"Smith {word}", "year": 2021},
    )
    document.file.save("f", ContentFile(picture))
    chunk = ChunkFactory(
        document=document,
        text=f"The warden keeps the keys of {word}.",
        heading_path=[f"Keys {word}"],
        metadata=document.metadata,
    )
    tokens = ChunkTokens.objects.create(
        chunk=chunk, workspace=owner.workspace, model=f"encoder-{word}", content_sha256="0" * 64
    )
    edit = ChunkEdit.objects.create(
        workspace=owner.workspace,
        document=document,
        chunk=chunk.pk,
        start=0,
        before=f"A {word}",
        after=chunk.text,
        user=owner.user,
        state=ChunkEdit.State.APPLIED,
    )
    staged = StagedDocument.objects.create(
        workspace=owner.workspace, document=document, payload=b"x"
    )
    vectors = StagedVectors.objects.create(
        workspace=owner.workspace,
        document=document,
        space=collection.space,
        digests=["0" * 64],
        vectors=b"x",
    )
    scanned = ScannedPage.objects.create(
        workspace=owner.workspace,
        document=document,
        source_sha256=document.source_sha256,
        page=1,
        engine="PP-OCRv6",
        text=f"A scan of {word}",
        lines=[
            {"box": BOX, "confidence": 0.9, "words": [["scanned", *BOX], [f"scanned-{word}", *BOX]]}
        ],
        confidence=0.9,
    )
    summary = get_summary(document_text_of(document), Summary.Kind.SUMMARY)
    table = _table(document, word)
    return {
        "document": document.pk,
        "documents.document": document.pk,
        "chunk": chunk.pk,
        "documents.chunk": chunk.pk,
        "documents.chunktokens": tokens.pk,
        "edit": edit.pk,
        "documents.chunkedit": edit.pk,
        "documents.stageddocument": staged.pk,
        "documents.stagedvectors": vectors.pk,
        "documents.scannedpage": scanned.pk,
        "rag.summary": summary.pk,
        "table": table.pk,
        "reading": plan_token(
            Plan(tables=(table.pk,), columns=(table.columns[0]["name"],), measure="count")
        ),
        **{model._meta.label_lower: pk for model, pk in _grouped(table).items()},
    }


def _table(document: Document, word: str) -> Table:
    table = Table.objects.create(
        workspace=document.workspace,
        collection=document.collection,
        document=document,
        ordinal=0,
        name=f"Keys {word}",
        columns=[{"name": f"Key {word}", "type": "number", "unit": ""}],
        row_count=1,
        fingerprint=f"{word[:40]}-{document.pk}",
    )
    common = {
        "workspace": document.workspace,
        "collection": document.collection,
        "table": table,
        "ordinal": 0,
    }
    ColumnBlock.objects.create(**common, position=0, starts=[0])
    ColumnBlock.objects.create(**common, position=1, cells=[f"7 {word}"], numbers=[7.0])
    return table


def _grouped(table: Table) -> dict[type[Model], int]:
    """The table's group, with a group that is suggested for it; ids by model."""
    common = {"workspace": table.workspace, "collection": table.collection}
    group, suggested = (TableGroup.objects.create(**common) for _ in range(2))
    column = GroupColumn.objects.create(**common, group=group, position=0, key="k", type="number")
    layout = TableLayout.objects.create(
        **common,
        fingerprint=table.fingerprint,
        group=group,
        positions=[0],
        suggested_group=suggested,
        suggested_positions=[0],
    )
    return {
        Table: table.pk,
        TableGroup: group.pk,
        GroupColumn: column.pk,
        TableLayout: layout.pk,
    }


def _source(collection: Collection, listed: list[str], words: Words) -> dict[str, Any]:
    source = DataSource.objects.create(
        workspace=collection.workspace,
        collection=collection,
        name=f"Cloud {words.shared}",
        connector="folder",
        options={"path": f"/nowhere/{words.shared}"},
        access_rules=[{"glob": "private/**", "access": listed}],
    )
    items = [
        DataSourceItem.objects.create(
            workspace=collection.workspace,
            source=source,
            key=name,
            name=name,
            version="1",
            failures=3,
            error=f"No {name}",
        )
        for name in (f"{words.shared}.md", f"private/{words.listed}.md")
    ]
    run = DataSourceRun.objects.create(
        workspace=collection.workspace, source=source, state="failed", finished_at=timezone.now()
    )
    notice = DataSourceNotice.objects.create(
        workspace=collection.workspace,
        source=source,
        problem="late",
        since=timezone.now(),
        error=f"No {words.shared}",
    )
    return {
        "source": source.pk,
        "sources.datasource": source.pk,
        "sources.datasourceitem": items[0].pk,
        "sources.datasourcerun": run.pk,
        "sources.datasourcenotice": notice.pk,
    }


def _models(owner: Membership, words: Words) -> dict[str, Any]:
    connection = ModelConnection.objects.create(
        workspace=owner.workspace,
        name=f"Model {words.shared}",
        kind="openai",
        address="https://127.0.0.1:1",
        model=f"model-{words.shared}",
    )
    chosen = WorkspaceModel.objects.create(workspace=owner.workspace, connection=connection)
    used = ModelUsage.objects.create(
        workspace=owner.workspace,
        user=owner.user,
        model=connection.model,
        purpose=ModelUsage.Purpose.ANSWER,
        day=timezone.localdate(),
        calls=2,
        estimated_calls=0,
        input_tokens=900,
        output_tokens=100,
    )
    return {
        "connection": connection.pk,
        "model_servers.modelconnection": connection.pk,
        "model_servers.workspacemodel": chosen.pk,
        "model_servers.modelusage": used.pk,
    }


def _database(collection: Collection, words: Words) -> dict[str, Any]:
    connection = DatabaseConnection.objects.create(
        workspace=collection.workspace,
        collection=collection,
        name=f"Shop {words.shared}",
        address="postgresql://127.0.0.1:1/shop",
        database="postgresql://127.0.0.1:1/shop",
        username=f"reader-{words.shared}",
        encryption=DatabaseConnection.Encryption.REQUIRE,
        seconds=1,
        max_rows=10,
    )
    return {"database": connection.pk, "rag.databaseconnection": connection.pk}


def _picture(word: str) -> bytes:
    """A page to be looked at, whose file holds the word."""
    about = PngInfo()
    about.add_text("Comment", f"The warden keeps {word}.")
    file = BytesIO()
    Image.new("L", (40, 60), 200 + len(word)).save(file, "PNG", pnginfo=about)
    return file.getvalue()


def _runs(collection: Collection, document: Document, words: Words) -> dict[str, Any]:
    state = IngestionRun.State
    done, running, failed = (
        RunFactory(
            collection=collection,
            source=f"Folder {words.shared}",
            state=state_,
            finished_at=None if state_ == state.RUNNING else timezone.now(),
        )
        for state_ in (state.SUCCEEDED, state.RUNNING, state.FAILED)
    )
    item = ItemFactory(
        run=done, document=document, name=f"{words.shared}.md", state=IngestionItem.State.READY
    )
    private = Document.objects.get(collection=collection, key="private.md")
    ItemFactory(
        run=done,
        document=private,
        name=f"{words.listed}.md",
        error=f"No {words.listed}",
        state=IngestionItem.State.FAILED,
    )
    for run in (running, failed):
        ItemFactory(run=run, name=f"{words.shared}.md", state=IngestionItem.State.FAILED)
    lexical_index.index_pending(collection.pk)
    # One more, whose words are in no segment, and one that is gone.
    gone = ChunkFactory(document=document, text=f"Gone {words.shared}")
    lexical_index.index_pending(collection.pk)
    gone.delete()
    ChunkFactory(document=document, text=f"Late {words.shared}")
    return {
        "run": done.pk,
        "running": running.pk,
        "failed": failed.pk,
        "documents.ingestionrun": done.pk,
        "documents.ingestionitem": item.pk,
        "documents.lexicalsegment": LexicalSegment.objects.filter(collection=collection)[0].pk,
    }


def _graph(private: Chunk, common: Chunk, words: Words) -> dict[str, Any]:
    workspace = private.workspace
    gate, wall = (
        make_node(f"src:{key}", workspace=workspace, name=f"The {key} {words.shared}", form=key)
        for key in ("gate", "wall")
    )
    edge = make_edge(gate, "NEEDS", wall, props={"of": words.shared})
    make_mention(common, gate)
    make_evidence(common, edge)
    hidden = make_extracted(f"ent:name:{words.listed}", private, name=f"Gate {words.listed}")
    make_edge(gate, "HIDES", hidden, origin="extracted")
    reading = Extraction.objects.create(
        workspace=workspace,
        collection=private.collection,
        document=private.document,
        error=f"No {words.listed}",
    )
    return {
        "graph.node": gate.pk,
        "graph.edge": edge.pk,
        "graph.alias": Alias.objects.filter(node=gate).values_list("pk", flat=True)[0],
        "graph.extraction": reading.pk,
    }
