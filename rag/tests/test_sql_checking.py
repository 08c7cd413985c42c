"""SQL against a catalogue: what means something passes, and what does not is named."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from documents.catalogue.tables import CatalogueError, Column, Table, TableName
from rag.sql.catalogue import Catalogue, guess_dialect
from rag.sql.checker import SqlCheck, check_sql


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
    [
        "SELECT count(*) FROM singer",
        "select NAME, COUNTRY from SINGER where AGE > 3",
        "SELECT s.Name FROM singer AS s WHERE s.Age = (SELECT max(Age) FROM singer)",
        "SELECT S.name FROM singer s ORDER BY s.AGE DESC LIMIT 1",
        "SELECT singer.Name FROM singer",
        "SELECT main.singer.Name FROM main.singer",
        "SELECT * FROM singer JOIN singer_in_concert USING (Singer_ID) WHERE singer_id = 1",
        "SELECT concert_ID FROM concert NATURAL JOIN singer_in_concert",
        "SELECT st.*, c.Theme FROM stadium st LEFT JOIN concert c ON st.Stadium_ID=c.Stadium_ID",
        "SELECT Name AS n FROM singer ORDER BY n",
        "SELECT Name AS n FROM singer WHERE n = 'x'",
        "SELECT Country, count(*) AS many FROM singer GROUP BY Country HAVING many > 1",
        "SELECT Country c FROM singer GROUP BY c",
        "SELECT Name FROM singer UNION SELECT Name FROM stadium ORDER BY Name",
        "SELECT Name FROM singer WHERE Singer_ID NOT IN (SELECT Singer_ID FROM singer_in_concert)",
        "SELECT Name FROM singer s WHERE EXISTS"
        " (SELECT 1 FROM singer_in_concert x WHERE x.Singer_ID = s.Singer_ID AND Age > 3)",
        "WITH old AS (SELECT Name AS who, Age FROM singer) SELECT who FROM old WHERE Age > 60",
        "WITH old (who) AS (SELECT Name FROM singer) SELECT old.who FROM old",
        "WITH a AS (SELECT Name FROM singer), b AS (SELECT Name FROM a) SELECT Name FROM b",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)"
        " SELECT i FROM n",
        "SELECT avg(a) FROM (SELECT Age AS a FROM singer)",
        "SELECT t.a FROM (SELECT Age AS a FROM singer) AS t",
        "SELECT a.Name, b.Name FROM singer a, singer b WHERE a.Age < b.Age",
        'SELECT "Home Town" FROM stadium',
        "SELECT [Home Town] FROM stadium",
        'SELECT Name FROM singer WHERE Country = "France"',
        "SELECT Name FROM singer WHERE Country IN ('France', \"Spain\")",
        "SELECT rowid, Name FROM singer",
        "SELECT CASE WHEN Age > 3 THEN Name ELSE Country END FROM singer",
        "SELECT Name, rank() OVER (PARTITION BY Country ORDER BY Age) FROM singer",
        "SELECT Name FROM singer;",
        "(SELECT Name FROM singer) LIMIT 3",
        "SELECT Name FROM (singer JOIN singer_in_concert USING (Singer_ID))",
        "SELECT date('now'), 1 + 1",
        "SELECT x.column1 FROM (VALUES (1)) AS x",
        "-- of all\nSELECT Name /* theirs */ FROM singer",
        "SELECT Name FROM singer EXCEPT SELECT s.Name FROM singer s JOIN singer_in_concert c"
        " ON s.Singer_ID = c.Singer_ID",
    ],
)
def test_what_means_something_passes(sql: str) -> None:
    assert found(sql).faults == ()


@pytest.mark.parametrize(
    ("sql", "kind", "name", "told"),
    [
        ("SELECT 1 FROM singers", "table", "singers", "Nearest: singer"),
        ("SELECT 1 FROM x.singer", "table", "x.singer", "There is no table “x.singer”"),
        ("SELECT nam FROM singer", "column", "nam", "singer has no column “nam”. Nearest: Name"),
        ("SELECT s.nam FROM singer s", "column", "nam", "Nearest: Name"),
        ("SELECT Theme FROM singer", "column", "Theme", "is in concert"),
        ("SELECT zzz FROM singer", "column", "zzz", "It has: Singer_ID, Name, Country, Age."),
        ("SELECT x FROM singer, stadium", "column", "x", "None of singer, stadium has a column"),
        ("SELECT Name FROM singer, stadium", "ambiguous", "Name", "singer and stadium"),
        ("SELECT T2.Name FROM singer T1", "alias", "T2.Name", "Nearest: T1"),
        ("SELECT singer.Name FROM singer s", "alias", "singer.Name", "called “singer”"),
        ("SELECT concert.* FROM singer", "alias", "concert.*", "There are: singer"),
        ("SELECT Name FROM singer WHERE Nam = 1", "column", "Nam", "Name"),
        ("SELECT Name FROM singer GROUP BY Countr", "column", "Countr", "Country"),
        ("SELECT Name FROM singer ORDER BY Yeer", "column", "Yeer", "singer has no column"),
        ("SELECT max(Yeer) FROM concert", "column", "Yeer", "Year"),
        (
            "SELECT Name FROM singer JOIN concert USING (Singer_ID)",
            "column",
            "Singer_ID",
            "concert",
        ),
        (
            "SELECT Name FROM singer WHERE Singer_ID IN (SELECT Name2 FROM singer_in_concert)",
            *("column", "Name2", "singer_in_concert has no column"),
        ),
        (
            "SELECT (SELECT s.Theme FROM concert c WHERE c.Year = s.Age) FROM singer s",
            *("column", "Theme", "singer has no column"),
        ),
        ("WITH o AS (SELECT Age FROM singer) SELECT Name FROM o", "column", "Name", "o has no"),
        (
            "WITH o AS (SELECT Age, count(*) FROM singer GROUP BY Age) SELECT Agee, count FROM o",
            "column",
            "Agee",
            "o has no column",
        ),
        ("WITH o AS (SELECT Agee FROM singer) SELECT 1 FROM o", "column", "Agee", "Age"),
        ("SELECT a.Age FROM (SELECT Name FROM singer) a", "column", "Age", "a has no column"),
        ("SELECT Name FROM singer UNION SELECT Nam FROM stadium", "column", "Nam", "stadium"),
        (
            "SELECT Name FROM singer UNION SELECT Name FROM stadium ORDER BY Age",
            "column",
            "Age",
            "",
        ),
        ('SELECT "Hometown" FROM stadium', "column", "Hometown", "Nearest: Home Town"),
        ("SELECT b.x FROM singer a, (SELECT a.Name AS x) b", "alias", "a.Name", "called “a”"),
        ("SELECT Name", "column", "Name", "no FROM"),
        ("SELECT", "syntax", "", "selects nothing"),
        ("SELECT Name FROM singer WHERE", "syntax", "", "cannot be read"),
        ("how many singers are there?", "syntax", "", "cannot be read"),
    ],
)
def test_what_means_nothing_is_named(sql: str, kind: str, name: str, told: str) -> None:
    checked = found(sql)
    assert not checked.passes, sql
    first = checked.faults[0]
    assert (first.kind, first.name) == (kind, name), checked.reason
    assert told in first.message


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM singer",
        "UPDATE singer SET Age = 1",
        "INSERT INTO singer (Age) VALUES (1)",
        "DROP TABLE singer",
        "CREATE TABLE x AS SELECT * FROM singer",
        "TRUNCATE TABLE singer",
        "ALTER TABLE singer ADD COLUMN x INT",
        "GRANT SELECT ON singer TO bob",
        "COPY singer TO '/tmp/x'",
        "COPY (SELECT * FROM singer) TO PROGRAM 'curl x'",
        "SET ROLE postgres",
        "BEGIN",
        "VACUUM",
        "EXPLAIN ANALYZE DELETE FROM singer",
        "CALL cleanup()",
        "DO $$ BEGIN PERFORM 1; END $$",
        "SELECT Name FROM singer; SELECT 1",
        "SELECT 1; DROP TABLE singer",
        "",
        ";",
        "-- nothing",
        "WITH gone AS (DELETE FROM singer RETURNING Name) SELECT Name FROM gone",
        "WITH new AS (INSERT INTO singer (Age) VALUES (1) RETURNING Age) SELECT Age FROM new",
        "SELECT Name INTO copied FROM singer",
        "SELECT Name FROM singer FOR UPDATE",
        "SELECT pg_sleep(10)",
        "SELECT Name FROM singer WHERE pg_sleep(10) IS NULL",
        "SELECT * FROM pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT dblink_exec('x', 'DROP TABLE y')",
        "SELECT set_config('role', 'x', false)",
        "SELECT nextval('singer_id')",
        "SELECT query_to_xml('DELETE FROM singer', true, true, '')",
    ],
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
    [
        ("SELECT o.id, x.n FROM orders o, LATERAL (SELECT count(*) AS n FROM customers c"
         " WHERE c.id = o.customer_id) x", "postgres"),
        ("SELECT g FROM generate_series(1, 3) AS g", "postgres"),
        ("SELECT k FROM orders, unnest(ARRAY[1, 2]) AS u(k)", "postgres"),
        ("SELECT row_to_json(o) FROM orders o", "postgres"),
        ("SELECT DISTINCT ON (customer_id) id FROM orders ORDER BY customer_id, id", "postgres"),
        ('SELECT extract(year FROM "createdAt"), date_trunc(\'day\', "createdAt") FROM orders',
         "postgres"),
        ("SELECT total::numeric, \"createdAt\" + interval '1 day' FROM orders", "postgres"),
        ("SELECT count(*) FILTER (WHERE total > 3) FROM orders", "postgres"),
        ("SELECT s.count, max FROM (SELECT count(*), max(total), (SELECT min(id) FROM customers)"
         " FROM orders) s WHERE min > 3", "postgres"),
        ("SELECT string_agg FROM (SELECT string_agg(name, ', ') FROM customers) s", "postgres"),
        ("SELECT u.t, u.n FROM orders o CROSS JOIN LATERAL unnest(ARRAY[1]) WITH ORDINALITY"
         " AS u(t, n)", "postgres"),
        ("SELECT p.[1] FROM (SELECT id, total FROM public.orders) s"
         " PIVOT (sum(total) FOR id IN ([1])) p", "tsql"),
        ("SELECT o.id, t FROM public.orders o, UNNEST([1]) AS t WITH OFFSET n WHERE n > 0",
         "bigquery"),
        ("SELECT total.a.b, o.total.a FROM public.orders o", "bigquery"),
        ("SELECT total AS t, t + 1 FROM public.orders WHERE t > 3", "snowflake"),
        ("SELECT 1 FROM dual", "oracle"),
        ("SELECT CASE WHEN total = \"a\" THEN \"yes\" END, ifnull(total, \"none\")"
         " FROM public.orders", "sqlite"),
        ("SELECT TOP 3 id FROM public.orders", "tsql"),
        ("SELECT DATEDIFF(day, createdAt, GETDATE()) FROM public.orders", "tsql"),
        ("SELECT c.n FROM public.orders o CROSS APPLY (SELECT count(*) n FROM public.customers x"
         " WHERE x.id = o.customer_id) c", "tsql"),
        ("SELECT id FROM public.orders WHERE rownum < 3", "oracle"),
        ("SELECT DATE_ADD(createdAt, INTERVAL 1 DAY) FROM public.orders", "mysql"),
        ("SELECT GROUP_CONCAT(name SEPARATOR ', ') FROM public.customers", "mysql"),
        ("SELECT id, total FROM public.orders QUALIFY row_number() OVER (ORDER BY total) = 1",
         "snowflake"),
        ("SELECT list_transform([1, 2], x -> x + 1) FROM public.orders", "duckdb"),
        ("SELECT o.id FROM public.orders AS o ORDER BY total", ""),
    ],
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
