"""Hubs, chains, loops and nonsense: bounded, and said clearly."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from accounts.models import Workspace
from common.errors import InvalidInput, NotFound
from graph import services
from graph.models import Alias, Edge, Node
from graph.node_ids import retired_id_form
from graph.reading import traversal
from graph.scopes import GraphScope
from graph.tests.factories import make_edge, make_node

pytestmark = pytest.mark.django_db

LEAVES = 20_000


def make_star(workspace: Workspace, leaves: int) -> None:
    """A hub and its leaves, each with its number as weight."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO graph_node (
                workspace_id, key, name, labels, props, origin, created_at, updated_at)
            SELECT %s, 'leaf:' || number, '', '{}', '{}', 'given', now(), now()
            FROM generate_series(1, %s) AS number
            """,
            [workspace.pk, leaves],
        )
    make_hub(workspace, "hub")


def make_hub(workspace: Workspace, key: str) -> Node:
    """A node that has all leaves."""
    hub = make_node(key, workspace=workspace)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO graph_edge (
                workspace_id, source_id, rel, target_id, weight, props, origin)
            SELECT workspace_id, %s, 'HAS', id, split_part(key, ':', 2)::int, '{}', 'given'
            FROM graph_node WHERE workspace_id = %s AND key LIKE 'leaf:%%'
            """,
            [hub.pk, workspace.pk],
        )
        cursor.execute("ANALYZE graph_node, graph_edge")
    return hub


def make_chain(workspace: Workspace, length: int, prefix: str = "link") -> list[Node]:
    nodes = Node.objects.bulk_create(
        [Node(workspace=workspace, key=f"{prefix}:{number}") for number in range(length + 1)]
    )
    Edge.objects.bulk_create(
        [
            Edge(workspace=workspace, source=here, rel="THEN", target=there)
            for here, there in pairwise(nodes)
        ]
    )
    return nodes


@pytest.mark.nightly
def test_a_star_of_thousands_is_looked_at_in_parts(workspace: Workspace, scope: GraphScope) -> None:
    make_star(workspace, LEAVES)
    page = services.neighbors(scope=scope, id="hub", limit=3)
    assert [each.vertex.id for each in page.items] == ["leaf:1", "leaf:2", "leaf:3"]
    assert page.total == LEAVES
    drawn = services.subgraph(scope=scope, ids=["hub"], hops=2, cap=50)
    assert len(drawn.vertices) == 50
    assert len(drawn.links) == 49
    assert drawn.vertices[1].id == f"leaf:{LEAVES}", "the largest weight comes first"
    assert drawn.truncated.limit
    assert drawn.truncated.hubs == ("hub",)
    assert drawn.degrees["hub"] > 50
    reached = services.traverse(scope=scope, start="leaf:7", max_depth=100, limit=500)
    assert [each.vertex.id for each in reached.items[:2]] == ["leaf:7", "hub"]
    assert len(reached.items) == 500
    assert reached.truncated.limit
    path = services.shortest_path(scope=scope, source="leaf:5", target="leaf:19999")
    assert [vertex.id for vertex in path.vertices] == ["leaf:5", "hub", "leaf:19999"]


def test_what_a_small_star_holds_is_all_there(workspace: Workspace, scope: GraphScope) -> None:
    make_star(workspace, 300)
    drawn = services.subgraph(scope=scope, ids=["hub"], cap=301)
    assert len(drawn.vertices) == 301
    assert not drawn.truncated
    assert not services.traverse(scope=scope, start="hub", limit=301).truncated


def test_a_chain_is_followed_for_a_hundred_steps_and_no_further(
    workspace: Workspace, scope: GraphScope
) -> None:
    make_chain(workspace, 150)
    result = services.traverse(scope=scope, start="link:0", max_depth=100)
    assert [each.vertex.id for each in result.items] == [f"link:{n}" for n in range(101)]
    assert not result.truncated
    found = services.shortest_path(scope=scope, source="link:0", target="link:100", max_depth=100)
    assert found.found
    assert found.length == 100
    far: dict[str, Any] = {"source": "link:0", "target": "link:101"}
    assert not services.shortest_path(scope=scope, max_depth=100, **far).found
    assert not services.shortest_path(scope=scope, direction="in", **far).found


def test_a_cycle_and_a_self_loop_end(workspace: Workspace, scope: GraphScope) -> None:
    first, *_, last = make_chain(workspace, 3)
    make_edge(last, "THEN", first)
    make_edge(first, "IS", first)
    result = services.traverse(scope=scope, start="link:0", max_depth=100, direction="out")
    assert [each.depth for each in result.items] == [0, 1, 2, 3]
    loop = services.neighbors(scope=scope, id="link:0", rel="IS")
    assert [(each.vertex.id, each.outgoing) for each in loop.items] == [("link:0", True)]
    drawn = services.subgraph(scope=scope, ids=["link:0"], hops=5)
    assert len(drawn.links) == 5


def test_from_a_vertex_to_itself_is_no_step(workspace: Workspace, scope: GraphScope) -> None:
    make_edge(node := make_node("a", workspace=workspace), "IS", node)
    found = services.shortest_path(scope=scope, source="a", target="a", max_depth=0)
    assert found.found
    assert (found.length, [vertex.id for vertex in found.vertices]) == (0, ["a"])


def test_the_same_path_is_found_each_time(workspace: Workspace, scope: GraphScope) -> None:
    start, end = make_node("s", workspace=workspace), make_node("t", workspace=workspace)
    for number in range(20):
        middle = make_node(f"m:{number}", workspace=workspace)
        make_edge(start, "TO", middle)
        make_edge(middle, "TO", end, weight=2.0 if number == 13 else 1.0)
    first, second = (services.shortest_path(scope=scope, source="s", target="t") for _ in range(2))
    assert first.found
    assert first == second


def test_a_path_is_found_past_hubs_on_both_sides(
    workspace: Workspace, scope: GraphScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each end has so many neighbours that they are looked at in a second attempt only."""
    monkeypatch.setattr(traversal, "FIRST_STEPS", 500)
    make_star(workspace, 600)
    hub = Node.objects.get(workspace=workspace, key="hub")
    other = make_hub(workspace, "other hub")
    between = make_node("between", workspace=workspace)
    make_edge(hub, "RARE", between, weight=0)
    make_edge(between, "RARE", other, weight=0)
    found = services.shortest_path(
        scope=scope, source="hub", target="other hub", direction="out", max_depth=2
    )
    assert [vertex.id for vertex in found.vertices] == ["hub", "between", "other hub"]
    assert services.shortest_path(scope=scope, source="hub", target="other hub").length == 2


def test_a_merged_node_answers_to_its_former_id(workspace: Workspace, scope: GraphScope) -> None:
    kept = make_node("ent:name:ada lovelace", workspace=workspace)
    Alias.objects.create(workspace=workspace, node=kept, form=retired_id_form("ent:name:ada"))
    found = services.get_node(scope=scope, id="ent:name:ada")
    assert found is not None
    assert found.id == kept.key
    drawn = services.subgraph(scope=scope, ids=["ent:name:ada", kept.key])
    assert len(drawn.vertices) == 1


@pytest.mark.parametrize(
    "id",
    [
        *("", " ", "nobody", "\0", "a\0b", "\ud800", "x" * 100_000, "doc:", "doc:no:x"),
        *(
            "chunk:no:x:0",
            "chunk:a:b:99999999999999",
            "chunk:a:b:999999999",
            "doc:a:b@v99999999999",
        ),
        *("' OR 1=1 --", "%", "%(id)s", "{node}", "doc:\0:b"),
    ],
)
def test_an_id_of_nothing_is_missing(workspace: Workspace, scope: GraphScope, id: str) -> None:
    make_node("there", workspace=workspace)
    assert services.get_node(scope=scope, id=id) is None
    with pytest.raises(NotFound, match="is not in the graph"):
        services.neighbors(scope=scope, id=id)
    assert services.subgraph(scope=scope, ids=["there", id]).missing == (id,)


Call = Callable[[GraphScope], Any]


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("limit", lambda scope: services.neighbors(scope=scope, id="there", limit=0)),
        ("limit", lambda scope: services.neighbors(scope=scope, id="there", limit=1001)),
        ("cursor", lambda scope: services.neighbors(scope=scope, id="there", cursor="x")),
        ("cursor", lambda scope: services.mentions_of(scope=scope, id="there", cursor="WzFd")),
        ("direction", lambda scope: services.neighbors(scope=scope, id="there", direction="up")),
        ("grain", lambda scope: services.traverse(scope=scope, start="there", grain="word")),
        ("max_depth", lambda scope: services.traverse(scope=scope, start="there", max_depth=101)),
        ("max_depth", lambda scope: services.traverse(scope=scope, start="there", max_depth=-1)),
        ("limit", lambda scope: services.traverse(scope=scope, start="there", limit=10_001)),
        ("hops", lambda scope: services.subgraph(scope=scope, ids=["there"], hops=6)),
        ("cap", lambda scope: services.subgraph(scope=scope, ids=["there"], cap=5_001)),
        ("ids", lambda scope: services.subgraph(scope=scope, ids=["there", "b"], cap=1)),
        ("rels", lambda scope: services.traverse(scope=scope, start="there", rels=["x"] * 101)),
        ("limit", lambda scope: services.find_nodes(scope=scope, text="x", limit=101)),
        ("kinds", lambda scope: services.find_nodes(scope=scope, text="x", kinds=["edge"])),
    ],
)
def test_what_cannot_be_asked_is_told_by_its_name(
    workspace: Workspace, scope: GraphScope, field: str, call: Call
) -> None:
    make_node("there", workspace=workspace)
    with pytest.raises(InvalidInput) as raised:
        call(scope)
    assert raised.value.field == field


@pytest.mark.parametrize("name", ["\0", "\ud800", "'", "%(rels)s", "x" * 10_000, ""])
def test_a_relation_or_label_that_cannot_be_leads_nowhere(
    workspace: Workspace, scope: GraphScope, name: str
) -> None:
    first, _ = make_chain(workspace, 1)
    assert services.neighbors(scope=scope, id=first.key, rel=[name]).items == ()
    assert len(services.subgraph(scope=scope, ids=[first.key], labels=[name]).vertices) == 1
