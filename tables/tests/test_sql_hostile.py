"""SQL that must not be run: named by the check, and where the check is passed by, refused by
PostgreSQL. And whatever the check passes is a SELECT over the offered views."""

import re
import tomllib
from contextlib import suppress
from itertools import pairwise

import pytest
import sqlglot
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.errors import SqlglotError

from accounts.models import Workspace
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from tables.models import Table
from tables.questions.plan import Column
from tables.sql import execute
from tables.sql.checker import CheckedQuery, check_query, generate
from tables.sql.execute import QueryFailed, run_as_reader, run_query
from tables.sql.views import View, ViewColumn
from tables.tests.test_asking import CORPUS

REFUSED = tomllib.loads((CORPUS / "hostile.toml").read_text())["refused"]
STATEMENTS = [(each["reason"], sql) for each in REFUSED for sql in each["sql"]]


def _tokens(sql: str) -> list[sqlglot.Token]:
    try:
        return sqlglot.tokenize(sql, read="postgres")
    except SqlglotError:
        return []


def view(name: str, *columns: tuple[str, str], tables: dict[int, str] | None = None) -> View:
    found = [ViewColumn(name, at, Column(name, kind)) for at, (name, kind) in enumerate(columns, 1)]  # type: ignore[arg-type]
    files = ViewColumn("file", 0, Column("file"))
    return View(name, (*found, files), tables or {1: f"{name}.csv"})


BIKES = view(
    "bikes",
    *(("Model", "text"), ("Category", "text"), ("Price", "number"), ("Gears", "number")),
)
EXPENSES = view("expenses", ("Date", "date"), ("Category", "text"), ("Amount", "number"))
VIEWS = (BIKES, EXPENSES)


def test_there_are_enough() -> None:
    assert len({sql for _, sql in STATEMENTS}) == len(STATEMENTS) >= 300


@pytest.mark.parametrize(("reason", "sql"), STATEMENTS, ids=[sql for _, sql in STATEMENTS])
def test_hostile_sql_is_refused_by_name(reason: str, sql: str) -> None:
    found = check_query(sql, VIEWS)
    assert not isinstance(found, CheckedQuery), found.sql
    assert re.search(reason, " ".join(map(str, found))), [str(each) for each in found]


# --- whatever passes ------------------------------------------------------------------------------

GOOD = list(tomllib.loads((CORPUS / "sql.toml").read_text())["sql"].values())
WORDS = sorted(
    {token.text for _, sql in STATEMENTS[::3] for token in _tokens(sql)}
    | {token.text for sql in GOOD for token in _tokens(sql)}
    | {"bikes", '"Model"', '"Price"', "pg_class", "(", ")", ",", ";", ".", "::", "'x'", "*"}
)
#: Names before a parenthesis in what may be run.
CALLS = frozenset(
    re.findall(
        r"\w+",
        """abs age as avg bool_and bool_or btrim ceil coalesce concat concat_ws corr count cume_dist
        date_trunc dense_rank every exists exp extract filter first_value floor greatest in initcap
        lag last_value lead least left length ln lower ltrim make_date max min mode ntile nullif
        over percent_rank percentile_cont percentile_disc position rank right round row_number
        rtrim sign split_part sqrt stddev stddev_pop stddev_samp substring sum to_char to_date trim
        trunc upper using var_pop var_samp variance within group and or not any all cast decimal
        numeric on where when then else by select from union intersect except distinct like ilike
        is between case interval timestamp varchar having limit""",
    )
)


def assert_is_harmless(found: CheckedQuery) -> None:
    """By the text that would be run, and not by the lists of the check."""
    sql = generate(found.tree)
    tokens = _tokens(sql)
    offered = {each.name for each in VIEWS}
    own = {cte.alias for cte in found.tree.find_all(exp.CTE)}
    assert sql.startswith(("SELECT ", "WITH ", "("))
    assert not {token.text for token in tokens} & {";", "$", ":", "?", "~", "^", "@", "&"}
    assert not any(token.comments for token in tokens)
    for before, token in pairwise(tokens):
        is_name = before.text[:1].isalpha() and before.token_type.name != "IDENTIFIER"
        if token.text == "(" and is_name:
            assert before.text.lower() in CALLS, sql
    (again,) = sqlglot.parse(sql, read="postgres")
    assert isinstance(again, exp.Query)
    for table in again.find_all(exp.Table):
        assert table.name in offered | own, sql
        assert not table.db, sql


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=25), st.booleans())
def test_what_passes_of_any_words_is_a_select_over_the_views(
    words: list[str], begins: bool
) -> None:
    found = check_query(" ".join(["SELECT", *words] if begins else words), VIEWS)
    if isinstance(found, CheckedQuery):
        assert_is_harmless(found)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_passes_of_spoilt_queries_is_a_select_over_the_views(data: st.DataObject) -> None:
    """Good queries with words of bad ones in place of theirs."""
    sql = data.draw(st.sampled_from([*PASSING, *(sql for _, sql in STATEMENTS)]))
    words = sql.split(" ")
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at] = data.draw(st.sampled_from(WORDS))
    found = check_query(" ".join(words), VIEWS)
    if isinstance(found, CheckedQuery):
        assert_is_harmless(found)


PASSING = (
    'SELECT count(*) FROM bikes WHERE "Price" > 4000 AND "Category" ILIKE \'c%\'',
    'SELECT b."Model" FROM bikes AS b JOIN expenses AS e ON e."Category" = b."Category"',
    'WITH a AS (SELECT max("Price") AS most FROM bikes) SELECT "Model" FROM bikes CROSS JOIN a'
    ' WHERE "Price" = most',
    'SELECT "Category", round(avg("Price"), 2) FROM bikes GROUP BY 1 HAVING count(*) > 1',
    'SELECT "Model" FROM bikes UNION ALL SELECT "Category" FROM expenses ORDER BY 1 LIMIT 5',
    'SELECT date_trunc(\'month\', "Date")::date AS m, sum("Amount") FILTER (WHERE "Amount" > 0)'
    " FROM expenses GROUP BY 1",
    'SELECT "Model", rank() OVER (PARTITION BY "Category" ORDER BY "Price" DESC) FROM bikes',
    "SELECT t.n + 1 FROM (SELECT count(*) AS n FROM bikes) AS t",
    'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY "Price") FROM bikes',
    "SELECT count(*) FROM expenses WHERE \"Date\" > current_date - interval '1 month'",
    'SELECT * FROM bikes WHERE "Model" IN (SELECT file FROM expenses) FETCH FIRST 3 ROWS ONLY',
    'SELECT "Model" || \' \' || "Category" FROM bikes WHERE length(trim("Model")) BETWEEN 1 AND 9',
)


@pytest.mark.parametrize("sql", PASSING)
def test_usual_queries_pass(sql: str) -> None:
    found = check_query(sql, VIEWS)
    assert isinstance(found, CheckedQuery), [str(each) for each in found]
    assert_is_harmless(found)
    assert check_query(found.sql, VIEWS) == found


def test_long_and_deep_queries_are_refused() -> None:
    for sql in (
        f"SELECT {'(' * 300}1{')' * 300}",
        f"SELECT {' + '.join(['1'] * 500)}",
        f"SELECT {', '.join(['1'] * 41)}",
        " UNION ALL ".join(["SELECT 1 FROM bikes"] * 13),
        f"SELECT '{'x' * 8_000}'",
        f"SELECT {'NOT ' * 1500} true",
        f"SELECT {'CASE WHEN true THEN ' * 200} 1 {'END ' * 200}",
    ):
        assert not isinstance(check_query(sql, VIEWS), CheckedQuery), sql[:60]


# --- below the check ------------------------------------------------------------------------------


@pytest.fixture
def bikes(collection: Collection) -> Table:
    return _bikes(collection)


def _bikes(collection: Collection) -> Table:
    text = "Model,Category,Price,Gears\nFerry,Cargo,4690,8\nDune,Mountain,5250,12\n"
    ingest_inline(
        collection=collection, sources=[text_source("bikes.csv", text, file_name="bikes.csv")]
    )
    return Table.objects.get(collection=collection)


def run_unchecked(sql: str, table: Table) -> list[str]:
    source = view("bikes", ("Model", "text"), tables={table.pk: "bikes.csv"})
    (found,) = run_as_reader(
        [sql], {"bikes": source.statement(["Model"])}, workspace_ids=[table.workspace_id]
    )
    return found


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root")
@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT password FROM public.accounts_user", "permission denied"),
        ("SELECT text FROM public.documents_chunk", "permission denied"),
        ("SELECT cells::text FROM public.tables_columnblock", "permission denied"),
        ("SELECT name FROM public.tables_table", "permission denied"),
        ("SELECT rolpassword::text FROM pg_authid", "permission denied"),
        ("SELECT nextval('public.accounts_user_id_seq')::text", "permission denied|read-only"),
        (
            "SELECT query_to_xml('SELECT * FROM public.accounts_user', true, true, '')::text",
            "denied",
        ),
        ("SELECT pg_read_file('PG_VERSION')", "permission denied"),
        ("SELECT pg_ls_dir('/')", "permission denied"),
        ("SELECT lo_import('/etc/passwd')::text", "permission denied|read-only"),
        ("SELECT lo_creat(-1)::text", "read-only"),
        ("INSERT INTO public.accounts_user DEFAULT VALUES RETURNING ''", "not allowed|denied"),
        ("DELETE FROM public.tables_columnblock RETURNING ''", "not allowed|denied"),
        ("UPDATE pg_temp.bikes SET \"Model\" = 'x' RETURNING ''", "cannot update view"),
        ("CREATE TABLE public.stolen AS SELECT 1; SELECT ''", "not allowed|denied|read-only"),
        ("CREATE TEMP TABLE stolen AS SELECT 1; SELECT ''", "not allowed|denied|read-only"),
        ("ALTER ROLE CURRENT_USER SUPERUSER; SELECT ''", "not allowed|denied|read-only"),
        ("DROP VIEW pg_temp.bikes; SELECT ''", "not allowed|must be owner|read-only"),
        ("COPY pg_temp.bikes TO PROGRAM 'cat'; SELECT ''", "not allowed|denied|cannot"),
        ("SET ROLE NONE; SELECT ''", "not allowed|cannot set"),
        ("RESET ROLE; SELECT ''", "not allowed|cannot set"),
        ("SELECT set_config('role', 'none', true)", "cannot set parameter"),
        ("SELECT set_config('session_authorization', 'postgres', true)", "cannot set|denied"),
        ("SELECT set_config('transaction_read_only', 'off', true)", "read-write mode"),
        ("SELECT set_config('temp_file_limit', '-1', true)", "permission denied"),
        ("SELECT pg_reload_conf()::text", "permission denied"),
        ("SELECT pg_sleep(60)::text", "took longer than 0.2 seconds"),
        ("SELECT count(*)::text FROM generate_series(1, 1000000000)", "took longer|temporary file"),
    ],
)
def test_the_database_refuses_what_the_check_would_have_let_pass(
    bikes: Table, sql: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "MAX_SECONDS", 0.2)
    with pytest.raises(QueryFailed, match=says):
        run_unchecked(sql, bikes)


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root")
def test_it_runs_as_a_role_that_sees_its_views_alone(bikes: Table) -> None:
    assert run_unchecked('SELECT "Model" FROM pg_temp.bikes ORDER BY 1', bikes) == ["Dune", "Ferry"]
    (name,) = run_unchecked("SELECT current_user::text", bikes)
    assert name.endswith("_tables")
    readable = """SELECT relname::text
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
        WHERE relkind IN ('r', 'v', 'm', 'p') AND has_table_privilege(c.oid, 'SELECT')
          AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
          AND relname NOT LIKE 'graph_stage_%'  -- temporary tables of tests before"""
    assert run_unchecked(readable, bikes) == ["bikes"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("media_root")
@pytest.mark.parametrize("sql", ['SELECT "Model" FROM pg_temp.bikes', "SELECT (1 / 0)::text"])
def test_nothing_of_it_stays_in_the_connection(bikes: Table, sql: str) -> None:
    """Whether it succeeds or fails, and without a transaction around it."""
    assert not connection.in_atomic_block
    with suppress(QueryFailed):
        run_unchecked(sql, bikes)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_regclass('pg_temp.bikes') IS NULL, current_setting('transaction_read_only'),"
            " current_user = session_user, current_setting('work_mem') = boot_val || 'kB'"
            " OR current_setting('work_mem') <> '32MB'"
            " FROM pg_settings WHERE name = 'work_mem'"
        )
        assert cursor.fetchone() == (True, "off", True, True)


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root")
def test_rows_of_another_workspace_stay_hidden(bikes: Table) -> None:
    """Where a query changes the setting that policies read, and where a view names foreign ids."""
    other = _bikes(CollectionFactory())
    assert isinstance(other.workspace, Workspace)
    assert other.workspace_id != bikes.workspace_id
    sql = f"""SELECT count(*) || set_config('ragsite.workspace', '{other.workspace_id}', true)
        FROM pg_temp.bikes"""
    assert run_unchecked(sql, bikes) == [f"2{other.workspace_id}"]
    foreign = view("bikes", ("Model", "text"), tables={other.pk: "bikes.csv", bikes.pk: "b.csv"})
    checked = check_query('SELECT "Model", file FROM bikes', [foreign])
    assert isinstance(checked, CheckedQuery)
    found = run_query(checked, workspace_ids=[bikes.workspace_id])
    assert set(found.rows) == {("Ferry", "b.csv"), ("Dune", "b.csv")}
    assert {table for table, _ in found.evidence} == {bikes.pk}
