"""A small site in which requests that are made up find something: three of each kind of thing,
numbered from FIRST, as `schemathesis.toml` says."""

from typing import Any

from django.utils import timezone

from accounts.models import ApiKey, Membership
from accounts.tests.keys import make_key
from documents.models import Chunk, Collection, IngestionItem
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    MembershipFactory,
    RunFactory,
)
from graph.tests.factories import make_edge, make_mention, make_node
from memory.models import Context, ExtractionItem
from memory.scopes import scope_of
from memory.services import set_fact
from memory.services.memories import record_messages
from memory.tests.factories import remember
from rag.context import RagContext
from rag.models import Conversation, DatabaseConnection, Message, Trace
from rag.pipelines.validation import templates
from rag.services.pipelines import create_pipeline
from search.models import SavedSearch
from sources.models import DataSource, DataSourceItem, DataSourceRun
from tables.groups.store import group_tables
from tables.models import ColumnBlock, Table

FIRST, LAST = 7001, 7003
NUMBERS = range(FIRST, LAST + 1)
SLUGS = ("notes", "leaflets")
TEXTS = ("Report a lost key card at the desk.", "The firm leaves Mill Street.", "Leave is 30 days.")


def make_world() -> str:
    """Make it; returns the secret of an owner's API key that may do anything."""
    alice = MembershipFactory()
    _documents(alice)
    _memory(alice)
    _chats(alice)
    a, b = (make_node(f"src:{name}", workspace=alice.workspace) for name in "ab")
    make_edge(a, "NEEDS", b)
    make_mention(Chunk.objects.get(pk=FIRST), a)
    _sources(alice)
    for number in NUMBERS:
        DatabaseConnection.objects.create(
            pk=number,
            workspace=alice.workspace,
            collection=Collection.objects.get(workspace=alice.workspace, slug=SLUGS[0]),
            name=f"Shop {number}",
            address=f"postgresql://127.0.0.1:1/shop{number}",
            database=f"postgresql://127.0.0.1:1/shop{number}",
            username="reader",
            encryption=DatabaseConnection.Encryption.REQUIRE,
            seconds=1,
            max_rows=10,
        )
        SavedSearch.objects.create(
            pk=number,
            workspace=alice.workspace,
            user=alice.user,
            name=f"Search {number}",
            parameters="q=key",
        )
        _renumber(ApiKey, make_key(alice, "read", name=f"Key {number}")[0].pk, number)
    return make_key(alice)[1]


def _documents(alice: Membership) -> None:
    notes, _ = (CollectionFactory(workspace=alice.workspace, slug=slug) for slug in SLUGS)
    for number, text, key in zip(NUMBERS, TEXTS, ("a.md", "b.md", "c.md"), strict=True):
        document = DocumentFactory(
            pk=number, collection=notes, key=key, metadata={"author": "Knuth", "year": 2020}
        )
        ChunkFactory(pk=number, document=document, text=text, heading_path=["One"], page=2)
        table = Table.objects.create(
            pk=number,
            workspace=alice.workspace,
            collection=notes,
            document=document,
            ordinal=0,
            columns=[{"name": "Days", "type": "number", "unit": ""}],
            row_count=1,
        )
        group_tables([table])
        block = {"workspace": alice.workspace, "collection": notes, "table": table, "ordinal": 0}
        ColumnBlock.objects.create(**block, position=0, starts=[0])
        ColumnBlock.objects.create(**block, position=1, cells=["30"], numbers=[30.0])
        run = RunFactory(pk=number, collection=notes)
        ItemFactory(run=run, document=document)
        ItemFactory(
            run=run, state=IngestionItem.State.FAILED, error_code="empty", error="Nothing in it."
        )


def _sources(alice: Membership) -> None:
    notes = Collection.objects.get(workspace=alice.workspace, slug=SLUGS[0])
    for number in NUMBERS:
        source = DataSource.objects.create(
            pk=number,
            workspace=alice.workspace,
            collection=notes,
            name=f"Team {number}",
            connector="folder",
            options={"path": "/nowhere"},
        )
        owner = {"workspace": alice.workspace, "source": source}
        DataSourceItem.objects.create(
            **owner, key="a.md", name="a.md", version="1", failures=3, error="It is locked."
        )
        DataSourceRun.objects.create(
            **owner, state=DataSourceRun.State.PARTIAL, finished_at=timezone.now()
        )


def _memory(alice: Membership) -> None:
    scope = scope_of(user=alice.user, workspace=alice.workspace)
    assert scope is not None
    for number in NUMBERS:
        _renumber(Context, remember(scope, f"I lost key {number}."), number)
        said = [{"role": "user", "content": f"I live in town {number}."}]
        recorded = record_messages(scope=scope, conversation=str(number), messages=said)
        assert recorded is not None
        _renumber(ExtractionItem, recorded.item_id, number)
    for slug in SLUGS:
        set_fact(scope=scope, key=slug, value="Oslo")
        set_fact(scope=scope, key=slug, value="Bergen")


def _chats(alice: Membership) -> None:
    now = timezone.now()
    owner = {"workspace": alice.workspace, "user": alice.user}
    for number in NUMBERS:
        chat = Conversation.objects.create(pk=number, title="Keys", **owner)
        for role in Message.Role.values:
            Message.objects.create(
                workspace=alice.workspace, conversation=chat, role=role, content="A key?"
            )
        Trace.objects.create(
            pk=number,
            pipeline="rag",
            state=Trace.State.DONE,
            started_at=now,
            ended_at=now,
            definition=templates()["rag"].to_json(),
            **owner,
        )
    for slug in SLUGS:
        definition = {**templates()["rag"].to_json(), "id": slug}
        context = RagContext(user=alice.user, workspace=alice.workspace)
        create_pipeline(context=context, definition=definition)


def _renumber(model: Any, old: int, new: int) -> None:
    model.objects.filter(pk=old).update(id=new)
