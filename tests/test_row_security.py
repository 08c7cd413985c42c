"""The second fence: what PostgreSQL itself shows to a request, whatever the statement says."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from accounts.middleware import workspace_rls
from accounts.models import Membership, Workspace
from common import rls
from common.rls import WorkspaceContext, bypass_rls, use_context, workspace_context
from documents.models import Chunk, Collection, Document
from documents.tests.factories import ChunkFactory, DocumentFactory, MembershipFactory

pytestmark = pytest.mark.django_db

TABLES = ("accounts_workspace", "documents_collection", "documents_document", "documents_chunk")


@pytest.fixture
def two() -> tuple[Workspace, Workspace]:
    """Two workspaces, each with a passage."""
    first, second = (ChunkFactory(document=DocumentFactory()) for _ in range(2))
    assert first.workspace != second.workspace
    return first.workspace, second.workspace


def count(table: str, where: str = "true") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} WHERE {where}")
        (number,) = cursor.fetchone()
    return number


def unfenced_tables() -> set[str]:
    """Tables with a workspace that the database does not fence."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
            " LEFT JOIN pg_policy AS p ON p.polrelid = c.oid AND p.polname = 'workspace'"
            " WHERE c.relkind IN ('r', 'p') AND a.attname = 'workspace_id'"
            "   AND c.relnamespace = current_schema()::regnamespace"
            "   AND (NOT c.relrowsecurity OR p.oid IS NULL)"
        )
        return {name for (name,) in cursor.fetchall()}


# --- the tables ---


def test_every_owned_table_has_a_policy() -> None:
    assert unfenced_tables() == set()
    assert len(rls.workspace_columns()) >= 35


def test_a_new_owned_table_without_a_policy_is_noticed_and_fenced_by_the_next_migrate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE invention (id bigint PRIMARY KEY, workspace_id bigint)")
    assert unfenced_tables() == {"invention"}

    owned = rls.workspace_columns()
    monkeypatch.setattr(rls, "workspace_columns", lambda: {**owned, "invention": "workspace_id"})
    rls.secure_tables()

    assert unfenced_tables() == set()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO invention VALUES (1, 1), (2, 2)")
    with workspace_context(2):
        assert count("invention") == 1


def test_the_role_is_no_superuser_owns_nothing_and_passes_no_policy() -> None:
    with workspace_context(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole OR rolcreatedb,"
            # but for temporary tables, which a request that loads much makes for itself
            " (SELECT count(*) FROM pg_class"
            " WHERE relowner = pg_roles.oid AND relpersistence <> 't')"
            " FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == (False, 0)


def test_setting_it_up_again_changes_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(oid), count(*) FROM pg_policy")
        before = cursor.fetchone()
        rls.secure_tables()
        cursor.execute("SELECT max(oid), count(*) FROM pg_policy")
        assert cursor.fetchone() == before


# --- hostile statements ---


def test_raw_sql_sees_its_own_workspace_alone(two: tuple[Workspace, Workspace]) -> None:
    first, second = two
    for own, other in ((first, second), (second, first)):
        with workspace_context(own.pk):
            for table in TABLES:
                assert count(table) == 1
            assert count("documents_chunk", f"workspace_id = {other.pk}") == 0
            assert count("documents_chunk", f"workspace_id = {own.pk} OR 1 = 1") == 1
            assert list(Document.objects.values_list("workspace", flat=True)) == [own.pk]


def test_every_owned_table_is_empty_to_nobody(two: tuple[Workspace, Workspace]) -> None:
    with workspace_context():
        assert {table for table in rls.workspace_columns() if count(table)} == set()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT text FROM documents_chunk WHERE workspace_id = {other}",
        "SELECT text FROM documents_chunk UNION SELECT text FROM documents_chunk",
        "SELECT c.text FROM accounts_user, documents_chunk c WHERE c.workspace_id = {other}",
        "WITH a AS MATERIALIZED (SELECT * FROM documents_chunk) SELECT text FROM a",
        "SELECT (SELECT text FROM documents_chunk WHERE workspace_id = {other} LIMIT 1)",
        "SELECT query_to_xml('SELECT text FROM documents_chunk', true, true, '')::text",
        "TABLE documents_chunk",
        "DELETE FROM documents_chunk WHERE workspace_id = {other} RETURNING text",
        "UPDATE documents_document SET title = 'x' WHERE workspace_id = {other} RETURNING title",
        "UPDATE documents_chunk SET workspace_id = {own} WHERE id > 0 RETURNING text",
    ],
)
def test_a_hostile_statement_gets_nothing_of_another(
    two: tuple[Workspace, Workspace], statement: str
) -> None:
    own, other = two
    Chunk.objects.filter(workspace=own).delete()
    Chunk.objects.filter(workspace=other).update(text="a well kept secret")
    with workspace_context(own.pk), connection.cursor() as cursor:
        cursor.execute(statement.format(own=own.pk, other=other.pk))
        rows = cursor.fetchall()
    assert "secret" not in str(rows)
    assert Chunk.objects.get(workspace=other).text == "a well kept secret"
    assert not Document.objects.filter(title="x").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO graph_node (workspace_id) VALUES ({other})",
        "UPDATE documents_document SET workspace_id = {other}",
        "ALTER TABLE documents_chunk DISABLE ROW LEVEL SECURITY",
        "DROP POLICY workspace ON documents_chunk",
        "CREATE POLICY mine ON documents_chunk USING (true)",
        "TRUNCATE documents_chunk",
        "SET row_security = off; SELECT text FROM documents_chunk",
        "SELECT * FROM django_admin_log",
        "SELECT * FROM pg_authid",
        "COPY documents_chunk TO PROGRAM 'cat'",
        "SELECT pg_read_file('PG_VERSION')",
    ],
)
def test_what_would_break_the_fence_is_refused(
    two: tuple[Workspace, Workspace], statement: str
) -> None:
    own, other = two
    with (
        workspace_context(own.pk),
        pytest.raises(ProgrammingError, match=r"row-level security|denied|must be owner"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format(own=own.pk, other=other.pk))


def test_what_is_deleted_is_forgotten_also_where_the_request_may_not_look() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.proname FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid"
            " WHERE NOT t.tgisinternal AND NOT p.prosecdef"
        )
        assert cursor.fetchall() == []


# --- within transactions and without ---


@pytest.mark.django_db(transaction=True)
def test_nothing_of_it_stays_in_a_connection(two: tuple[Workspace, Workspace]) -> None:
    assert not connection.in_atomic_block
    with workspace_context(two[0].pk):
        assert count("documents_chunk") == 1
    # As the next user of a pooled connection would find it.
    held = connection.connection.execute(
        "SELECT current_user = session_user, coalesce(current_setting(%s, true), '')",
        [rls.WORKSPACES_SETTING],
    )
    assert held.fetchone() == (True, "")
    assert count("documents_chunk") == 2


def test_fences_follow_one_another_in_a_transaction(two: tuple[Workspace, Workspace]) -> None:
    first, second = two
    with transaction.atomic():
        with workspace_context(first.pk):
            assert list(Document.objects.values_list("workspace", flat=True)) == [first.pk]
            with workspace_context(second.pk):
                assert list(Document.objects.values_list("workspace", flat=True)) == [second.pk]
                with bypass_rls():
                    assert count("documents_document") == 2
            assert count("documents_document") == 1
        assert count("documents_document") == 2


def test_a_failed_statement_is_undone_within_a_fence(two: tuple[Workspace, Workspace]) -> None:
    with workspace_context(two[0].pk):
        with pytest.raises(ProgrammingError), transaction.atomic():
            count("nowhere")
        assert count("documents_chunk") == 1


def test_rows_read_by_a_cursor_of_the_server_are_fenced(two: tuple[Workspace, Workspace]) -> None:
    with workspace_context(two[1].pk):
        rows = Chunk.objects.order_by("pk").iterator(chunk_size=1)
        assert [chunk.workspace_id for chunk in rows] == [two[1].pk]


@pytest.mark.django_db(transaction=True)
def test_rows_read_in_parts_without_a_transaction_are_fenced(
    two: tuple[Workspace, Workspace],
) -> None:
    with workspace_context(two[1].pk):
        rows = Chunk.objects.order_by("pk").iterator(chunk_size=1)
        assert [chunk.workspace_id for chunk in rows] == [two[1].pk]


def test_a_row_of_another_workspace_cannot_be_saved(two: tuple[Workspace, Workspace]) -> None:
    own, other = two
    with (
        workspace_context(own.pk),
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction.atomic(),
    ):
        Collection.objects.create(workspace=other, slug="smuggled", name="Smuggled", space_id=1)


# --- requests ---


def ask(user: object, path: str, view: object) -> HttpResponse:
    request = RequestFactory().get(path)
    request.user = user  # type: ignore[assignment]
    return workspace_rls(view)(request)  # type: ignore[arg-type, return-value]


def all_documents(request: HttpRequest) -> HttpResponse:
    """A view that forgot `visible_to`."""
    return HttpResponse(",".join(map(str, Document.objects.values_list("workspace", flat=True))))


def test_a_view_that_forgets_to_ask_shows_nothing_of_others(
    two: tuple[Workspace, Workspace],
) -> None:
    member = MembershipFactory(workspace=two[0])
    assert ask(member.user, "/search/", all_documents).content == str(two[0].pk).encode()
    Membership.objects.create(user=member.user, workspace=two[1])
    assert len(ask(member.user, "/search/", all_documents).content.split(b",")) == 2
    stranger = MembershipFactory()
    assert ask(stranger.user, "/search/", all_documents).content == b""


def test_a_stream_stays_within_the_fence_of_its_request(two: tuple[Workspace, Workspace]) -> None:
    ended: list[str] = []

    def parts() -> Iterator[bytes]:
        try:
            for _ in range(2):
                yield all_documents(HttpRequest()).content
        finally:
            ended.append(all_documents(HttpRequest()).content.decode())

    member = MembershipFactory(workspace=two[0])
    response = ask(member.user, "/chat/", lambda request: StreamingHttpResponse(parts()))
    stream = iter(response)
    assert next(stream) == str(two[0].pk).encode()
    assert count("documents_document") == 2  # between two parts
    response.close()
    assert ended == [str(two[0].pk)]


def test_staff_see_everything_in_the_admin_alone(two: tuple[Workspace, Workspace]) -> None:
    staff = MembershipFactory(workspace=two[0], user__is_superuser=True).user
    assert len(ask(staff, "/admin/documents/", all_documents).content.split(b",")) == 2
    assert ask(staff, "/search/", all_documents).content == str(two[0].pk).encode()
    member = MembershipFactory(workspace=two[0]).user
    assert ask(member, "/admin/documents/", all_documents).content == str(two[0].pk).encode()


def test_a_key_opens_one_workspace_of_its_user(
    two: tuple[Workspace, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    from accounts.tests.keys import make_key
    from documents.api.views import DocumentViewSet

    member = MembershipFactory(workspace=two[0])
    Membership.objects.create(user=member.user, workspace=two[1])
    _, secret = make_key(member, "read")
    monkeypatch.setattr(DocumentViewSet, "get_queryset", lambda self: Document.objects.all())
    monkeypatch.setattr(DocumentViewSet, "in_workspace", lambda self, rows: rows)

    answer = Client().get("/api/v1/documents/", headers={"authorization": f"Bearer {secret}"})

    keys = set(Document.objects.filter(workspace=two[0]).values_list("key", flat=True))
    assert {each["key"] for each in answer.json()["results"]} == keys


def test_a_thread_that_lost_its_request_finds_nothing_in_a_web_server(
    two: tuple[Workspace, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rls, "_default_context", None)
    assert count("documents_chunk") == 2
    rls.deny_by_default()
    assert count("documents_chunk") == 0
    with bypass_rls():
        assert count("documents_chunk") == 2


def test_who_asks_is_looked_up_once_and_only_when_the_database_is_asked() -> None:
    asked: list[int] = []

    def find() -> list[int]:
        asked.append(count("accounts_workspace"))  # without a fence, or this would not end
        return []

    with use_context(WorkspaceContext(find)):
        assert asked == []
        count("documents_chunk")
        count("documents_chunk")
    assert len(asked) == 1


def test_without_the_role_nothing_is_fenced_and_a_check_says_so(
    two: tuple[Workspace, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.core.checks import run_checks

    from common import rls

    def found() -> list[str]:
        return [each.id for each in run_checks(tags=["database"], databases=["default"]) if each.id]

    assert "common.W003" not in found()
    monkeypatch.setattr(rls, "_roles", {})
    monkeypatch.setattr(rls, "_ROLE_QUERY", "SELECT '' WHERE false")
    assert "common.W003" in found()
    with workspace_context(two[0].pk):
        assert count("documents_chunk") == 2


def test_a_role_that_is_missing_is_not_looked_for_with_every_statement(
    two: tuple[Workspace, Workspace],
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: Any,
) -> None:
    from common import rls

    monkeypatch.setattr(rls, "_roles", {})
    monkeypatch.setattr(rls, "_ROLE_QUERY", "SELECT '' WHERE false")
    with workspace_context(two[0].pk), django_assert_num_queries(1 + 3):
        for _ in range(3):
            count("documents_chunk")


def test_models_that_belong_to_a_workspace_say_so_in_a_column() -> None:
    """A table that belongs through another row would pass the fence unseen: name it here with the
    reason."""
    from django.apps import apps

    free = {
        # people, rights and sessions, which say who asks
        *("auth_group", "auth_permission", "auth_group_permissions", "django_session"),
        *("accounts_user", "accounts_user_groups", "accounts_user_user_permissions"),
        *("accounts_identity", "accounts_secondfactor", "accounts_loginsession"),
        # what the site is made of, and the admin's own log, which requests may not read
        *("django_content_type", "django_admin_log", "documents_embeddingspace"),
        # numbers of a move between spaces; no text
        "documents_reembedding",
    }
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    assert tables - set(rls.workspace_columns()) == free


# --- collections of a limited key ---


def test_every_table_with_a_collection_has_a_policy_of_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT polrelid::regclass::text FROM pg_policy"
            " WHERE polname = 'collection' AND NOT polpermissive"
        )
        assert {name for (name,) in cursor.fetchall()} == set(rls.collection_columns())
    assert {"documents_chunk", "documents_collection"} <= set(rls.collection_columns())


def test_raw_sql_sees_the_collections_of_the_key_alone(two: tuple[Workspace, Workspace]) -> None:
    own = Document.objects.get(workspace=two[0])
    other = ChunkFactory(document__collection__workspace=two[0]).document
    ids = {"documents_chunk": "collection_id", "documents_collection": "id"}
    with workspace_context(two[0].pk, collections=frozenset([own.collection_id])):
        for table, column in ids.items():
            assert count(table) == 1
            assert count(table, f"{column} = {other.collection_id} OR 1 = 1") == 1
        with workspace_context(two[0].pk):
            assert count("documents_chunk") == 1  # what is within sees no more
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            Collection.objects.create(
                workspace=two[0], slug="more", name="More", space=own.collection.space
            )
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            Document.objects.filter(pk=own.pk).update(collection=other.collection)
    with workspace_context(two[0].pk):
        assert count("documents_chunk") == 2  # in the same transaction
    assert count("documents_chunk") == 3


def test_a_limited_key_opens_nothing_where_the_database_cannot_limit_it(
    two: tuple[Workspace, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rls, "request_role", lambda connection: "")
    limited = workspace_context(two[0].pk, collections=frozenset([1]))
    with pytest.raises(rls.CannotLimit, match="W003"), limited:
        count("documents_chunk")
