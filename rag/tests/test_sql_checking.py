"""SQL against a catalogue: what means something passes, and what does not is named."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from documents.catalogue.tables import CatalogueError, Column, Table, TableName
from documents.sql.catalogue import Catalogue, guess_dialect
from documents.sql.checker import SqlCheck, check_sql
from tests.cases import read_cases

CASES = read_cases(__file__, "sql")


def table(name: str, *columns: str, schema: str = "") -> Table:
    return Table(TableName(schema, name), tuple(Column(column, "") for column in columns))


SINGERS = Catalogue(
    "concerts",
    (
        table("singer", "Singer_ID", "Name", "Country", "Age"),
        table("concert", "concert_ID", "Theme", "Stadium_ID", "Year"),
        table("singer_in_concert", "concert_ID", "Singer_ID"),
        table("stadium", "Stadium_ID", "Name", "Home Town", "Capacity"),
    ),
)
SHOP = Catalogue(
    "postgresql://db:5432/shop",
    (
        table("orders", "id", "customer_id", "total", "createdAt", schema="public"),
        table("customers", "id", "name", "city", "Name2", schema="public"),
        table("orders", "id", "archived", schema="archive"),
        table("events", "id", "kind", schema="log"),
        table("events", "id", "level", schema="audit"),
    ),
)


def found(sql: str, *catalogues: Catalogue, dialect: str = "sqlite") -> SqlCheck:
    return check_sql(sql, catalogues or [SINGERS], dialect=dialect)


@pytest.mark.parametrize(
    "sql",
    CASES["meaningful"],
)
def test_what_means_something_passes(sql: str) -> None:
    assert found(sql).faults == ()


@pytest.mark.parametrize(
    ("sql", "kind", "name", "told"),
    CASES["meaningless"],
)
def test_what_means_nothing_is_named(sql: str, kind: str, name: str, told: str) -> None:
    checked = found(sql)
    assert not checked.passes, sql
    first = checked.faults[0]
    assert (first.kind, first.name) == (kind, name), checked.reason
    assert told in first.message


@pytest.mark.parametrize(
    "sql",
    CASES["more_than_reading"],
)
def test_nothing_passes_that_does_more_than_read(sql: str) -> None:
    checked = found(sql, dialect="postgres")
    assert not checked.passes
    assert checked.faults[0].kind in ("refused", "syntax", "table")


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("SELECT * FROM singer INTO OUTFILE '/tmp/x'", "mysql"),
        ("SELECT sleep(10), Name FROM singer", "mysql"),
        ("SELECT load_extension('x')", "sqlite"),
        ("ATTACH DATABASE 'x' AS y", "sqlite"),
        ("PRAGMA writable_schema = 1", "sqlite"),
        ("EXEC xp_cmdshell 'dir'", "tsql"),
        ("SELECT * FROM OPENROWSET('x', 'y', 'z')", "tsql"),
        ("SELECT * FROM read_csv('/etc/passwd')", "duckdb"),
    ],
)
def test_nor_in_other_dialects(sql: str, dialect: str) -> None:
    assert not found(sql, dialect=dialect).passes


def test_tables_are_told_by_their_schemas() -> None:
    assert found("SELECT total FROM orders", SHOP, dialect="postgres").passes
    assert found("SELECT o.archived FROM archive.orders o", SHOP, dialect="postgres").passes
    assert found("SELECT public.orders.total FROM public.orders", SHOP, dialect="postgres").passes
    wrong = found("SELECT archived FROM public.orders", SHOP, dialect="postgres")
    assert wrong.faults[0].message.startswith("public.orders has no column “archived”.")
    assert "archive.orders" in wrong.reason
    several = found("SELECT id FROM events", SHOP, dialect="postgres").faults[0]
    assert (several.kind, several.name) == ("ambiguous", "events")
    assert "log.events, audit.events" in several.message
    assert [str(used.name) for used in found("SELECT 1 FROM log.events", SHOP).used] == [
        "log.events"
    ]


def test_case_matters_as_the_dialect_says() -> None:
    assert found('SELECT "NAME" FROM singer').passes
    assert found("SELECT `name` FROM singer", dialect="mysql").passes
    assert found('SELECT "Name" FROM singer', dialect="postgres").passes
    assert found("SELECT NAME FROM SINGER", dialect="postgres").passes
    wrong = found('SELECT "NAME" FROM singer', dialect="postgres")
    assert wrong.reason.startswith(
        'singer has no column “NAME”. Write it "Name", with the double quotes.'
    )
    assert not found('SELECT 1 FROM "Singer"', dialect="postgres").passes


def test_names_that_the_database_itself_told_are_known_to_the_letter() -> None:
    for right in ('SELECT "createdAt" FROM orders', "SELECT TOTAL FROM Public.ORDERS"):
        assert found(right, SHOP, dialect="postgres").passes
    for wrong in ("createdAt", '"createdat"', "orders.createdAt"):
        checked = found(f"SELECT {wrong} FROM orders", SHOP, dialect="postgres")
        assert 'Write it "createdAt", with the double quotes.' in checked.reason
    derived = 'SELECT d.Made FROM (SELECT "createdAt" AS made FROM orders) d'
    assert found(derived, SHOP, dialect="postgres").passes


def test_a_text_in_double_quotes_is_one_only_where_the_dialect_says_so() -> None:
    sql = 'SELECT Name FROM singer WHERE Country = "France"'
    assert found(sql, dialect="sqlite").passes
    assert found(sql, dialect="mysql").passes
    assert found(sql, dialect="postgres").faults[0].name == "France"
    assert found('SELECT "Nam" FROM singer', dialect="sqlite").faults[0].name == "Nam"


@pytest.mark.parametrize(
    ("sql", "dialect"),
    CASES["of_dialects"],
)  # fmt: skip
def test_what_dialects_have_of_their_own_passes(sql: str, dialect: str) -> None:
    assert found(sql, SHOP, dialect=dialect).faults == ()


def test_the_database_that_a_statement_fits_best_is_the_one_it_is_for() -> None:
    assert found("SELECT total FROM orders", SINGERS, SHOP, dialect="").database == SHOP.database
    assert found("SELECT Age FROM singer", SHOP, SINGERS, dialect="").database == "concerts"
    wrong = found("SELECT Agee FROM singer", SHOP, SINGERS, dialect="")
    assert (wrong.database, wrong.faults[0].name) == ("concerts", "Agee")
    with pytest.raises(InvalidInput, match="no tables"):
        check_sql("SELECT 1", [])


def test_a_database_tells_its_dialect() -> None:
    assert guess_dialect("postgresql://db:5432/shop") == "postgres"
    assert guess_dialect("sqlite:///shop.db") == "sqlite"
    assert guess_dialect("schema.sql") == ""
    assert check_sql('SELECT "NAME" FROM customers', [SHOP]).faults[0].name == "NAME"
    with pytest.raises(CatalogueError, match="postgres"):
        check_sql("SELECT 1", [SHOP], dialect="klingon")


def test_every_fault_is_told_once_and_not_more_than_a_few() -> None:
    twice = found("SELECT nam, nam FROM singer")
    assert len(twice.faults) == 1
    many = ", ".join(f"wrong{number}" for number in range(40))
    assert len(found(f"SELECT {many} FROM singer").faults) == 8


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 3000 + "1" + ")" * 3000,
        "SELECT 1 " + "UNION SELECT 1 " * 1200,
        "SELECT " + "a." * 200 + "b FROM singer",
        "SELECT Name FROM singer WHERE " + "NOT " * 3000 + "TRUE",
        "SELECT '" + "x" * 30_000 + "'",
        "SELECT \x00 FROM singer",
        "\ud800",
    ],
    ids=["brackets", "unions", "dots", "nots", "long", "nul", "surrogate"],
)
def test_hostile_statements_are_answered(sql: str) -> None:
    checked = found(sql)
    assert isinstance(checked.passes, bool)
    assert len(checked.reason) < 5000


_WORDS = (
    "SELECT FROM WHERE JOIN ON USING ( ) , . * = singer Name Age concert AS x WITH UNION ORDER BY"
    " GROUP HAVING IN NOT EXISTS 'a' \"b\" 1 ; NULL CASE WHEN THEN END OVER LATERAL"
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(_WORDS.split()), max_size=25),
    st.sampled_from(["", "sqlite", "postgres", "mysql"]),
)
def test_nothing_that_is_written_makes_the_check_fail(words: list[str], dialect: str) -> None:
    checked = found(" ".join(words), dialect=dialect)
    assert checked.passes == (not checked.reason)
