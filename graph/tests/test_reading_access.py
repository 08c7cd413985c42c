"""What documents tell is there for those who may read them, however they look at the graph."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from accounts.models import Role, User, Workspace
from accounts.services import principals
from common.errors import NotFound
from documents.models import Chunk, Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
)
from graph import services
from graph.models import Edge, Mention, Node
from graph.querysets import Origin
from graph.scopes import GraphScope, graph_scope
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node

pytestmark = pytest.mark.django_db

SECRET = "zanzibar"


@dataclass
class World:
    """Alice may read everything, Bob all but the secret document."""

    workspace: Workspace
    alice: User
    bob: User
    public: Chunk
    secret: Chunk

    def scope(self, user: User | None) -> GraphScope:
        return graph_scope(user=user, workspace=self.workspace)


@pytest.fixture
def world() -> World:
    alice, bob = UserFactory(username="alice"), UserFactory(username="bob")
    membership = MembershipFactory(user=alice)
    MembershipFactory(user=bob, workspace=membership.workspace, role=Role.VIEWER)
    collection = CollectionFactory(workspace=membership.workspace, slug="files")
    public = ChunkFactory(document=DocumentFactory(collection=collection, key="open.txt"))
    secret = ChunkFactory(
        document=DocumentFactory(
            collection=collection,
            key=f"{SECRET}.txt",
            title=f"The {SECRET} file",
            access=principals(alice)[:1],
        ),
        text=f"Everything about {SECRET}.",
    )
    world = World(membership.workspace, alice, bob, public, secret)
    _fill(world)
    return world


def _fill(world: World) -> None:
    known = make_extracted(
        "ent:name:known", world.public, world.secret, name="Known", labels=["Person"]
    )
    hidden = make_extracted(
        f"ent:name:{SECRET}", world.secret, name=SECRET.title(), labels=[f"{SECRET}-label"]
    )
    other = make_extracted("ent:name:other", world.public, name="Other")
    given = make_node("given", workspace=world.workspace, name="Given")
    spoken = make_edge(known, f"{SECRET}_REL", other, origin=Origin.EXTRACTED)
    make_evidence(world.secret, spoken)
    make_evidence(world.public, make_edge(known, "KNOWS", other, origin=Origin.EXTRACTED))
    make_edge(given, "ABOUT", hidden)
    make_edge(hidden, "ABOUT", known)
    row = make_node(
        f"doc:files:{SECRET}.txt", workspace=world.workspace, document=world.secret.document
    )
    make_edge(given, "CITES", row)
    # a link from the public document into the secret one, and back
    Mention.objects.filter(chunk=world.secret, node=hidden).update(kind=Mention.Kind.SELF)
    link = make_extracted("ref:link", world.public, name="link")
    Mention.objects.filter(chunk=world.public, node=link).update(kind=Mention.Kind.LINK)
    make_mention(world.secret, link, kind=Mention.Kind.SELF)


STARTS = (
    "ent:name:known",
    "ent:name:other",
    "given",
    "doc:files:open.txt",
    "chunk:files:open.txt:0",
)
HIDDEN = (
    f"ent:name:{SECRET}",
    f"doc:files:{SECRET}.txt",
    f"doc:files:{SECRET}.txt@v1",
    f"chunk:files:{SECRET}.txt:0",
)


def everything(scope: GraphScope) -> Iterator[Any]:
    """What every service says, from every start."""
    for id in (*STARTS, *HIDDEN):
        yield services.get_node(scope=scope, id=id)
    for start in STARTS:
        for grain in ("document", "chunk"):
            yield services.neighbors(scope=scope, id=start, grain=grain)
            yield services.traverse(
                scope=scope, start=start, max_depth=100, grain=grain, props=True
            )
            yield services.subgraph(
                scope=scope, ids=[start, *HIDDEN], hops=5, grain=grain, props=True
            ).vertices
            yield services.subgraph(scope=scope, ids=[start], hops=5, cap=5, grain=grain)
        yield services.mentions_of(scope=scope, id=start)
        for target in STARTS:
            yield services.shortest_path(scope=scope, source=start, target=target, max_depth=9)
    for text in (
        "Known",
        SECRET,
        SECRET[:3],
        SECRET[:1],
        "file",
        f"{SECRET}x",
        "ent:",
        "doc:",
        "The",
    ):
        yield services.find_nodes(scope=scope, text=text, limit=100)
    yield services.graph_statistics(scope=scope)
    yield b"".join(services.export_graphml(scope=scope)).decode()
    yield b"".join(services.export_graphml(scope=scope, ids=STARTS, hops=5)).decode()
    yield services.export_cytoscape(services.subgraph(scope=scope, ids=STARTS, hops=5))


def said(scope: GraphScope) -> str:
    return "\n".join(map(repr, everything(scope)))


def test_nothing_tells_of_a_document_that_one_may_not_read(world: World) -> None:
    assert SECRET in said(world.scope(world.alice)).casefold()
    assert SECRET in said(world.scope(None)).casefold()
    assert SECRET not in said(world.scope(world.bob)).casefold()


def test_what_one_may_not_read_changes_no_number_order_or_path(world: World) -> None:
    """Bob sees the same as if it had never been there."""
    before = said(world.scope(world.bob))
    Edge.objects.filter(rel__in=["ABOUT", "CITES", f"{SECRET}_REL"]).delete()
    Node.objects.filter(key__in=HIDDEN).delete()
    world.secret.delete()
    world.secret.document.delete()
    assert said(world.scope(world.bob)) == before


@pytest.mark.parametrize("id", HIDDEN)
def test_what_one_may_not_read_is_missing_like_what_is_not_there(world: World, id: str) -> None:
    assert services.get_node(scope=world.scope(world.alice), id=id) is not None
    bob = world.scope(world.bob)
    assert services.get_node(scope=bob, id=id) is None
    for missing in (id, "ent:name:nobody"):
        with pytest.raises(NotFound, match="is not in the graph"):
            services.neighbors(scope=bob, id=missing)
        with pytest.raises(NotFound, match="is not in the graph"):
            services.traverse(scope=bob, start=missing)
        with pytest.raises(NotFound, match="is not in the graph"):
            services.shortest_path(scope=bob, source="given", target=missing)
        with pytest.raises(NotFound, match="is not in the graph"):
            services.mentions_of(scope=bob, id=missing)
        with pytest.raises(NotFound, match="None of these"):
            services.subgraph(scope=bob, ids=[missing])
        assert services.subgraph(scope=bob, ids=["given", missing]).missing == (missing,)


def test_a_path_goes_only_where_one_may_look(world: World) -> None:
    """From given to known it is two steps, over what Bob may not read."""
    asked: dict[str, Any] = {"source": "given", "target": "ent:name:known", "max_depth": 9}
    alice = services.shortest_path(scope=world.scope(world.alice), **asked)
    assert alice.found
    assert alice.length == 2
    assert SECRET in alice.vertices[1].id
    assert not services.shortest_path(scope=world.scope(world.bob), **asked).found


def test_statements_and_querysets_have_one_rule(world: World) -> None:
    for user in (world.alice, world.bob):
        nodes = Node.objects.visible_to(user).filter(document=None, chunk=None)
        counts = services.graph_statistics(scope=world.scope(user))
        assert counts.nodes == Node.objects.visible_to(user).count()
        assert counts.edges == Edge.objects.visible_to(user).count()
        assert counts.documents == Document.objects.visible_to(user).count()
        for node in Node.objects.filter(document=None, chunk=None):
            seen = services.get_node(scope=world.scope(user), id=node.key)
            assert (seen is not None) == (node in nodes)


def test_of_a_superseded_version_nothing_is_told(world: World) -> None:
    Chunk.objects.filter(pk=world.public.pk).update(is_current=False)
    for user in (world.bob, world.alice):
        assert services.get_node(scope=world.scope(user), id="ent:name:other") is None
    assert services.get_node(scope=world.scope(world.alice), id="ent:name:known") is not None
    assert services.get_node(scope=world.scope(world.bob), id="ent:name:known") is None


def test_another_workspace_is_not_there(world: World) -> None:
    charlie = UserFactory()
    elsewhere = MembershipFactory(user=charlie).workspace
    scope = graph_scope(user=charlie, workspace=elsewhere)
    assert all(services.get_node(scope=scope, id=id) is None for id in (*STARTS, *HIDDEN))
    assert services.find_nodes(scope=scope, text="Known") == ()
    counts = services.graph_statistics(scope=scope)
    assert (counts.nodes, counts.edges, counts.documents, counts.mentions) == (0, 0, 0, 0)
    assert b"<node" not in b"".join(services.export_graphml(scope=scope))
    with pytest.raises(NotFound, match="This workspace does not exist, or you are not a member"):
        graph_scope(user=charlie, workspace=world.workspace)


def test_who_may_not_sign_in_any_more_sees_nothing(world: World) -> None:
    world.alice.is_active = False
    world.alice.save()
    with pytest.raises(NotFound, match="This workspace does not exist, or you are not a member"):
        world.scope(world.alice)
