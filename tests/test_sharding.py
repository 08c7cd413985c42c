"""Spreading tables by workspace: nothing is in the way, and the rewritten keys are worked on."""

from typing import Any

import pytest
from django.contrib.admin import site
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection
from django.db.models import Count
from django.test import Client
from django.urls import reverse
from ragsite.sharding import (
    COORDINATOR_TABLES,
    DROPPED_FOREIGN_KEYS,
    REFERENCE_TABLES,
    SAFE_TRIGGERS,
    SHARD_COLUMN,
    ShardingLayout,
)

from accounts.models import Change, Membership
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import delete_document, ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from graph.models import Edge, Mention, Node
from graph.scopes import graph_scope
from graph.services import merge_nodes, upsert_edge, upsert_node
from graph.services.extraction import extract_waiting
from search.query_options import scope_for
from search.services import search

pytestmark = pytest.mark.django_db

PARENT = "id bigint PRIMARY KEY, workspace_id bigint NOT NULL"


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def layout(*more: str) -> ShardingLayout:
    return ShardingLayout(connection, more=more)


def test_every_table_of_the_site_can_be_spread(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("distribute", "--check")

    assert f"tables can be spread by {SHARD_COLUMN}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("id bigint PRIMARY KEY", "new_thing: a row may have no workspace_id"),
        ("id bigint PRIMARY KEY, workspace_id bigint", "new_thing: a row may have no workspace_id"),
        ("id int PRIMARY KEY, workspace_id bigint NOT NULL", "new_thing: its id is integer"),
        (f"{PARENT}, name text CONSTRAINT one_name UNIQUE", "new_thing: one_name (name)"),
        (
            f"{PARENT}, change bigint CONSTRAINT of_change REFERENCES accounts_change (id)",
            "new_thing: of_change leads to accounts_change",
        ),
        (
            f"{PARENT}, node bigint DEFAULT 1 CONSTRAINT of_node REFERENCES graph_node (id)"
            " ON DELETE SET DEFAULT",
            "new_thing: of_node sets a default",
        ),
    ],
)
def test_a_new_table_that_could_not_be_spread_is_named(columns: str, said: str) -> None:
    execute(f"CREATE TABLE new_thing ({columns})")

    (problem,) = layout("new_thing").problems()

    assert problem.startswith(said)


def test_an_index_a_trigger_and_a_shared_table_that_leads_to_others_are_named() -> None:
    execute(
        f"CREATE TABLE new_thing ({PARENT}, node bigint REFERENCES graph_node (id), open bool)",
        "CREATE UNIQUE INDEX one_open ON new_thing (node) WHERE open",
        "CREATE TRIGGER told BEFORE UPDATE ON new_thing"
        " FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "ALTER TABLE auth_group ADD thing bigint CONSTRAINT of_thing REFERENCES new_thing (id)",
    )

    problems = layout("new_thing").problems()

    assert [problem.partition(" is ")[0].partition(" leads ")[0] for problem in problems[:2]] == [
        "new_thing: one_open",
        "auth_group: of_thing",
    ]
    assert problems[2].startswith("new_thing: trigger told")


def test_what_is_declared_is_there() -> None:
    found = layout()

    assert {*REFERENCE_TABLES, *COORDINATOR_TABLES} <= found.tables.keys()
    assert {name for _, name in found.triggers} == set(SAFE_TRIGGERS)
    assert {(each.table, *each.columns) for each in found.foreign_keys} >= set(DROPPED_FOREIGN_KEYS)


def test_the_command_fails_for_a_table_in_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    execute("ALTER TABLE graph_alias ALTER workspace_id DROP NOT NULL")

    with pytest.raises(CommandError, match="graph_alias: a row may have no workspace_id") as raised:
        call_command("distribute", "--check")

    assert raised.value.returncode == 1


def test_without_citus_nothing_is_done() -> None:
    before = vars(layout())

    with pytest.raises(CommandError, match="has no Citus") as raised:
        call_command("distribute")

    assert raised.value.returncode == 2
    assert vars(layout()) == before


@pytest.fixture
def rewritten() -> None:
    """The keys as they are on a cluster; all of it but Citus' own functions."""
    before, _, after = layout().plan()
    execute(*before, *after)


@pytest.mark.usefixtures("rewritten")
def test_what_is_done_is_not_done_again() -> None:
    again = layout()

    assert again.problems() == []
    assert again.plan()[::2] == ([], [])


@pytest.mark.usefixtures("rewritten")
def test_the_admin_works_on_rewritten_keys(admin_client: Client) -> None:
    for model in site._registry:
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert admin_client.get(address).status_code == 200, address


@pytest.mark.usefixtures("rewritten")
def test_whole_models_are_not_grouped_by_a_part_of_their_key() -> None:
    """Why there is `common.fields.RowCount`."""
    with pytest.raises(ProgrammingError, match="must appear in the GROUP BY"):
        list(Collection.objects.annotate(Count("documents")))


@pytest.mark.usefixtures("rewritten")
def test_the_site_works_on_rewritten_keys(settings: Any) -> None:
    alice: Membership = MembershipFactory()
    collection = CollectionFactory(workspace=alice.workspace, graph=Collection.Graph.RULES)
    text = "Aripiprazole Tablets cause nausea. Aripiprazole Tablets are made by Acme Corporation."
    for name in ("one.txt", "two.txt"):
        ingest_inline(collection=collection, sources=[text_source(name, f"{name}: {text}")])
    ingest_inline(collection=collection, sources=[text_source("one.txt", f"Now: {text}")])
    extract_waiting(collection=collection)
    scope = scope_for(user=alice.user, workspace=alice.workspace)
    graph = graph_scope(user=alice.user, workspace=alice.workspace)

    assert {hit.document_key for hit in search("nausea", scope=scope, mode="graph").hits} == {
        "one.txt",
        "two.txt",
    }
    assert Mention.objects.exists()
    client = Client()
    client.force_login(alice.user)
    for page in ("/", "/documents/", f"/documents/{collection.slug}/", "/dashboard/"):
        assert client.get(page).status_code == 200, page

    for node in ("drug", "medicine", "nausea"):
        upsert_node(scope=graph, id=node, name=node)
        upsert_edge(scope=graph, source="drug", rel="CAUSES", target=node)
    merge_nodes(scope=graph, keep="drug", others=["medicine"])
    for document in Document.objects.filter(is_current=True):
        delete_document(document=document)
    Collection.objects.get(pk=collection.pk).delete()

    assert not Chunk.objects.exists()
    assert not Mention.objects.exists()
    assert not Node.objects.filter(origin="extracted").exists()
    assert Edge.objects.exists()
    assert Change.objects.exists()
    execute("SET CONSTRAINTS ALL IMMEDIATE")
