"""Queries over a catalogued database that are run: right rows, limits, and nothing that writes."""

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Change, Role
from common.errors import Forbidden, InvalidInput
from documents.models import Collection, Document
from documents.sql.checker import check_sql
from documents.tests.factories import CollectionFactory, MembershipFactory
from inference.tests.stub_server import Reply, StubServer, chat_reply
from rag.context import RagContext
from rag.events import Citation, Event, Failed, answer_text
from rag.models import DatabaseConnection, Span
from rag.services import databases
from rag.services.pipelines import run_pipeline
from rag.sql.connections import DatabaseUnavailable, RoleMayWrite
from rag.sql.options import DatabaseOptions
from rag.sql.runnable import NotRunnable, runnable_sql
from rag.sql.running import QueryFailed, run_query
from rag.sql.table_search import find_tables
from rag.tests.shop import OWNER, READER, WRITER, Shop, shop
from tests.cases import read_cases

pytestmark = pytest.mark.usefixtures("media_root")

CASES = read_cases(__file__, "sql_runs")
QUESTION = "What revenue did customers bring, by city?"
RIGHT = (
    "SELECT c.city, sum(o.revenue_eur) AS revenue FROM crm.customers c"
    " JOIN crm.orders o ON o.customer_id = c.id GROUP BY c.city ORDER BY revenue DESC"
)


@pytest.fixture(scope="module")
def server_shop(django_db_setup: None, django_db_blocker: Any) -> Iterator[Shop]:
    with django_db_blocker.unblock(), shop() as made:
        yield made


@pytest.fixture
def context(transactional_db: None) -> RagContext:
    """Of the owner of a workspace."""
    member = MembershipFactory(role=Role.OWNER)
    return RagContext(user=member.user, workspace=member.workspace)


@pytest.fixture
def collection(context: RagContext) -> Collection:
    """Empty, and the owner's."""
    made: Collection = CollectionFactory(workspace=context.workspace, slug="tables")
    return made


@pytest.fixture
def catalogued(collection: Collection, server_shop: Shop) -> Shop:
    """The tables are documents of the collection."""
    server_shop.catalogue(collection)
    return server_shop


@pytest.fixture
def connected(collection: Collection, catalogued: Shop) -> DatabaseConnection:
    return databases.connect_database(collection=collection, options=catalogued.options())[0]


def fenced(sql: str) -> Reply:
    return chat_reply(f"```sql\n{sql}\n```")


def ask(context: RagContext) -> list[Event]:
    return list(run_pipeline("sql", QUESTION, context=context))


def result_of(sql: str, context: RagContext, connection: DatabaseConnection) -> Any:
    """The rows of a statement, checked and run as the node does it."""
    found = find_tables(context, QUESTION)
    checked = check_sql(sql, found.databases, dialect="postgres")
    assert checked.passes, checked.reason
    return run_query(connection, runnable_sql(checked)).rows


def test_a_query_is_run_and_its_rows_are_shown_before_it(
    context: RagContext, connected: DatabaseConnection, server: StubServer
) -> None:
    server.first(fenced(RIGHT))
    events = ask(context)
    text = answer_text(events)
    assert text.startswith(
        "| city | revenue |\n| --- | ---: |\n| Bergen | 200.00 |\n| Oslo | 150.00 |\n\n```sql\n"
    )
    assert RIGHT in text
    assert text.endswith("and run on Shop.")
    for cited in [event for event in events if isinstance(event, Citation)]:
        assert text[cited.at :].startswith(f"[{cited.passage.number}]")
    (ran,) = Span.objects.filter(type="run_query")
    assert '"crm"."orders"' in ran.input
    change = Change.objects.get(action="queried")
    assert (change.kind, change.thing, change.user) == ("database", connected.pk, context.user)
    assert change.details["values"]["rows"] == 2
    assert "revenue" not in str(change.details)


def test_without_a_connection_it_is_written_and_not_run(
    context: RagContext, catalogued: Shop, server: StubServer
) -> None:
    server.first(fenced(RIGHT))
    assert answer_text(ask(context)).endswith(", and not run.")
    assert not Change.objects.filter(action="queried").exists()


def test_gold_queries_give_the_right_rows(
    context: RagContext, connected: DatabaseConnection
) -> None:
    for each in CASES["gold"]:
        found = result_of(each["sql"], context, connected)
        rows = [["" if cell is None else cell for cell in row] for row in found]
        assert rows == each["rows"], each["sql"]


def test_hostile_statements_are_not_run(
    context: RagContext, connected: DatabaseConnection, server_shop: Shop, server: StubServer
) -> None:
    """The model tries three in an answer, as it is told twice what is wrong."""
    before = server_shop.state()
    hostile = CASES["hostile"]
    for at in range(0, len(hostile), 3):
        tried = (hostile[at : at + 3] * 3)[:3]
        server.first(*map(fenced, tried))
        failed = ask(context)[-1]
        assert isinstance(failed, Failed), tried
        assert failed.code == "invalid_sql", tried
        assert len(server.requests) == at + 3, tried
        assert server_shop.state() == before, tried
        assert not Span.objects.filter(type="run_query").exists(), tried


def test_an_error_of_the_database_goes_back_to_the_model(
    context: RagContext, connected: DatabaseConnection, server: StubServer
) -> None:
    server.first(fenced("SELECT name::int FROM crm.customers"), fenced(RIGHT))
    assert "| Oslo | 150.00 |" in answer_text(ask(context))
    told = server.requests[1].json["messages"][-1]["content"]
    assert "invalid input syntax for type integer" in told
    assert "What is wrong with it:" in told
    ran = Change.objects.filter(action="queried").order_by("id")
    assert [change.details["values"]["is_done"] for change in ran] == [False, True]


def test_one_value_is_said_first(
    context: RagContext, connected: DatabaseConnection, server: StubServer
) -> None:
    server.first(fenced("SELECT count(*) AS orders FROM crm.orders"))
    assert answer_text(ask(context)).startswith("**4** (orders)\n\n")


def test_cells_are_no_markdown(
    context: RagContext, connected: DatabaseConnection, server: StubServer
) -> None:
    server.first(fenced("SELECT note FROM crm.orders ORDER BY id"))
    events = ask(context)
    text = answer_text(events)
    assert "| \\[1\\] !\\[x\\](http://evil.test/) |" in text
    assert "| \\<img src=x\\> |" in text


def test_rows_time_and_transaction_have_limits(
    context: RagContext, collection: Collection, catalogued: Shop
) -> None:
    small = catalogued.options(max_rows=2, seconds=1)
    connection, _ = databases.connect_database(collection=collection, options=small)
    found = run_query(connection, 'SELECT id FROM "crm"."orders" ORDER BY id')
    assert (found.rows, found.is_cut) == ((("1",), ("2",)), True)
    with pytest.raises(QueryFailed, match="statement timeout"):
        run_query(connection, "SELECT pg_sleep(30)")
    # Were all checks passed by: neither a transaction nor a role that writes, and one statement.
    before = catalogued.state()
    for statement in (
        'INSERT INTO "crm"."orders" VALUES (9, 1, 1, NULL)',
        "SELECT 1; SELECT 2",
        "SELECT 1) AS a; COMMIT; SELECT (1",
        'SELECT "crm"."spend"()',
        "SELECT set_config('transaction_read_only', 'off', false), \"crm\".\"spend\"()",
    ):
        with pytest.raises(QueryFailed):
            run_query(connection, statement)
    assert catalogued.state() == before
    assert result_of("SELECT lower(name) FROM crm.customers WHERE id = 1", context, connection) == (
        ("adler",),
    )


@pytest.mark.parametrize(
    ("role", "told"),
    [
        (WRITER, "it may write or owns crm.orders"),
        (OWNER, "it may write or owns crm.salaries"),
        ("", "it is a superuser"),
    ],
    ids=["writer", "owner", "superuser"],
)
def test_a_role_that_may_write_is_refused(
    collection: Collection, server_shop: Shop, role: str, told: str
) -> None:
    from django.db import connection

    role = role or connection.settings_dict["USER"]
    with pytest.raises(RoleMayWrite, match=told):
        databases.connect_database(collection=collection, options=server_shop.options(role))
    assert not DatabaseConnection.objects.exists()


def test_a_role_that_has_got_more_rights_runs_nothing_more(
    context: RagContext, connected: DatabaseConnection, server_shop: Shop, server: StubServer
) -> None:
    server_shop.execute(f"GRANT UPDATE (revenue_eur) ON crm.orders TO {READER}")
    try:
        server.first(fenced(RIGHT))
        failed = ask(context)[-1]
    finally:
        server_shop.execute(f"REVOKE UPDATE (revenue_eur) ON crm.orders FROM {READER}")
    assert isinstance(failed, Failed)
    assert failed.code == "role_may_write"
    assert "crm.orders" in failed.detail


class TestWhoRunsQueries:
    def test_an_access_list_holds(
        self, context: RagContext, collection: Collection, catalogued: Shop, server: StubServer
    ) -> None:
        member = MembershipFactory(workspace=context.workspace, role=Role.VIEWER)
        other = RagContext(user=member.user, workspace=context.workspace)
        databases.connect_database(
            collection=collection, options=catalogued.options(), access=[f"user:{context.user_id}"]
        )
        server.always(lambda _: fenced(RIGHT))
        assert answer_text(ask(context)).endswith("run on Shop.")
        assert answer_text(ask(other)).endswith("not run.")

    def test_tables_that_are_not_catalogued_or_not_visible_are_not_read(
        self, context: RagContext, connected: DatabaseConnection, server: StubServer
    ) -> None:
        server.always(lambda _: fenced("SELECT euros FROM crm.salaries"))
        failed = ask(context)[-1]
        assert isinstance(failed, Failed)
        assert "There is no table “crm.salaries”" in failed.detail
        hidden = Document.objects.get(key="crm.orders")
        Document.objects.filter(pk=hidden.pk).update(access=["user:0"])
        hidden.chunks.update(access=["user:0"])
        server.always(lambda _: fenced("SELECT id FROM crm.orders"))
        failed = ask(context)[-1]
        assert isinstance(failed, Failed)
        assert "There is no table “crm.orders”" in failed.detail

    def test_one_that_is_switched_off_runs_nothing(
        self, context: RagContext, connected: DatabaseConnection, server: StubServer
    ) -> None:
        databases.change_connection(connection=connected, is_enabled=False, user=context.user)
        server.first(fenced(RIGHT))
        assert answer_text(ask(context)).endswith("not run.")


class TestWhoConnects:
    @pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "localhost"])
    def test_owners_reach_no_address_of_the_sites_network(
        self, context: RagContext, collection: Collection, host: str
    ) -> None:
        options = DatabaseOptions.from_data(
            {"address": f"postgresql://{host}:5432/shop", "username": "r"}
        )
        with pytest.raises(DatabaseUnavailable, match="the site's own network"):
            databases.connect_database(collection=collection, options=options, user=context.user)

    def test_a_name_is_resolved_once_and_connected_to_by_its_number(
        self, context: RagContext, collection: Collection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import psycopg

        given: list[dict[str, Any]] = []
        answers = iter([["93.184.216.34"], ["127.0.0.1"]])  # as a name that is bound anew says

        def refuse(**parameters: Any) -> None:
            given.append(parameters)
            raise psycopg.OperationalError("connection refused")

        monkeypatch.setattr("rag.sql.connections.resolve_host", lambda *_: next(answers))
        options = DatabaseOptions.from_data(
            {"address": "postgresql://db.example.org/shop", "username": "r", "password": "s3cret"}
        )
        with monkeypatch.context() as patched:
            patched.setattr("rag.sql.connections.psycopg.connect", refuse)
            with pytest.raises(DatabaseUnavailable) as error:
                databases.connect_database(
                    collection=collection, options=options, user=context.user
                )
        assert [(each["host"], each["hostaddr"]) for each in given] == [
            ("db.example.org", "93.184.216.34")
        ]
        assert "s3cret" not in str(error.value)

    def test_owners_use_no_socket_and_no_connection_without_tls(
        self, context: RagContext, collection: Collection, server_shop: Shop
    ) -> None:
        plain = DatabaseOptions.from_data(
            {"address": "postgresql://db.example.org/x", "username": "r", "encryption": "prefer"}
        )
        for options in (server_shop.options(), plain):
            with pytest.raises(InvalidInput):
                databases.connect_database(
                    collection=collection, options=options, user=context.user
                )

    def test_what_the_operator_has_set_owners_only_switch_off(
        self, context: RagContext, connected: DatabaseConnection, server_shop: Shop
    ) -> None:
        for changes in (
            {"options": server_shop.options(seconds=5)},
            {"access": None},
            {"is_enabled": True},
        ):
            with pytest.raises(Forbidden):
                databases.change_connection(connection=connected, user=context.user, **changes)
        databases.change_connection(connection=connected, is_enabled=False, user=context.user)

    def test_a_password_is_kept_encrypted_and_goes_to_no_other_server(
        self, collection: Collection, server_shop: Shop
    ) -> None:
        connection, _ = databases.connect_database(
            collection=collection, options=server_shop.options(password="s3cret")
        )
        assert b"s3cret" not in bytes(connection.credentials)
        elsewhere = server_shop.options(address="postgresql://db.example.org/shop")
        with pytest.raises(InvalidInput, match="Enter the password again"):
            databases.change_connection(connection=connection, options=elsewhere)
        before = bytes(connection.credentials)
        assert databases.encrypt_anew() == 1
        connection.refresh_from_db()
        assert bytes(connection.credentials) != before


def test_a_connection_goes_with_its_collection(
    collection: Collection, connected: DatabaseConnection
) -> None:
    from documents.services import delete_collection

    delete_collection(collection=collection)
    assert not DatabaseConnection.objects.exists()


@pytest.mark.parametrize(
    "address",
    [
        "mysql://h/d",
        "postgresql://user:pw@h/d",
        "postgresql://user@h/d",
        "postgresql://h",
        "postgresql://a,b/d",
        "postgresql://h/d?options=-c",
        "postgresql://h/d?host=/tmp",
        "postgresql:///d?host=relative",
        "postgresql://h:99999/d",
        "postgresql://h:x/d",
        "host=h dbname=d",
        "",
    ],
)
def test_addresses_that_are_none_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        DatabaseOptions.from_data({"address": address, "username": "r"})


def test_what_did_not_pass_is_not_written() -> None:
    from documents.catalogue.tables import Column, Table, TableName
    from documents.sql.catalogue import Catalogue

    of = Catalogue("d", (Table(TableName("s", "t"), (Column("a", "int"),)),))
    with pytest.raises(NotRunnable):
        runnable_sql(check_sql("SELECT b FROM s.t", [of], dialect="postgres"))
