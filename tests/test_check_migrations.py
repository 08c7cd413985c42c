"""What the check of migrations finds in their SQL."""

import pytest

from scripts.check_migrations import locking_statements

TABLE = 'ALTER TABLE "documents_chunk" '


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        (TABLE + "ADD COLUMN \"n\" bigint DEFAULT (nextval('s')) NOT NULL", "row to row"),
        (TABLE + 'ADD COLUMN "n" int GENERATED ALWAYS AS (id * 2) STORED', "generated"),
        (TABLE + 'ALTER COLUMN "key" TYPE varchar(2048)', "another type"),
        (TABLE + 'ALTER COLUMN "key" SET NOT NULL', "require_value"),
        (TABLE + 'ADD CONSTRAINT "c" CHECK ("page" > 0)', "NOT VALID"),
        ('CREATE INDEX "i" ON "documents_chunk" ("page")', "CONCURRENTLY"),
        ("UPDATE documents_chunk SET page = 1", "fill_in_steps"),
    ],
)
def test_statements_that_lock_a_large_table_are_found(sql: str, problem: str) -> None:
    (found,) = locking_statements(f"BEGIN; --\n-- What it does on table t\n--\n{sql}; COMMIT;")
    assert found.startswith("documents_chunk: ")
    assert problem in found


@pytest.mark.parametrize(
    "sql",
    [
        TABLE + "ADD COLUMN \"kind\" varchar(9) DEFAULT '' NOT NULL",
        TABLE + 'ADD CONSTRAINT "c" CHECK ("page" > 0) NOT VALID',
        'CREATE INDEX CONCURRENTLY "i" ON "documents_chunk" ("page")',
        'CREATE TABLE "new" ("id" bigint); CREATE INDEX "i" ON "new" ("id"); UPDATE new SET id = 1',
        "CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN UPDATE new SET page = 1; END $$",
    ],
)
def test_other_statements_are_not(sql: str) -> None:
    assert list(locking_statements(sql)) == []
