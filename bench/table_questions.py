"""Questions to tables with known answers, of Spider's databases: rows are made by a script, and the
SQL that Spider gives says what is right.

    python -m bench.table_questions ../shared/data/spider_schema OUT

Writes a folder for each database, with its tables as CSV and `questions.toml`. To measure one:

    manage.py ingest OUT/world_1 --collection world_1
    manage.py tables evaluate OUT/world_1 --collection world_1 --failures

Taken are questions of one table that ask for a count, a sum, an average, an extreme, groups or some
rows of one column. Begin with `made_databases`.
"""

import csv
import json
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import sqlglot
from sqlglot import exp

#: Rows of a table.
ROWS = 24
#: `Home Town (home town, text)`, one behind the other.
_COLUMN = re.compile(r"(.+?) \(([^()]*(?:\([^()]*\)[^()]*)*), (\w+)\)(?:, |$)")
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo")

Cell = str | int


@dataclass
class MadeTable:
    """A table: names of columns in SQL and for people, types, rows."""

    name: str
    columns: list[tuple[str, str, str]]
    rows: list[list[Cell]] = field(default_factory=list)


@dataclass
class MadeDatabase:
    """A database with its `questions` as `manage.py tables evaluate` reads them. `asked` is how
    many Spider has for it."""

    name: str
    tables: list[MadeTable]
    questions: list[dict[str, Any]]
    asked: int

    def write(self, folder: Path) -> None:
        """Write the tables as CSV, and `questions.toml`."""
        folder.mkdir(parents=True, exist_ok=True)
        for table in self.tables:
            with (folder / f"{table.name}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(label for _, label, _ in table.columns)
                writer.writerows(table.rows)
        blocks = [
            "\n".join(["[[questions]]", *(f"{key} = {_toml(each[key])}" for key in each)])
            for each in self.questions
        ]
        (folder / "questions.toml").write_text("\n".join([*blocks, ""]))


def made_databases(folder: Path) -> Iterator[MadeDatabase]:
    """The databases of Spider in a folder that have questions of one table."""
    asked = defaultdict(list)
    for line in (folder / "queries.jsonl").read_text().splitlines():
        query = json.loads(line)
        asked[query["db_id"]].append(query)
    tables = defaultdict(list)
    for line in (folder / "corpus.jsonl").read_text().splitlines():
        entry = json.loads(line)
        _, _, columns = entry["text"].partition(": ")
        read = [(found[1], found[2], found[3]) for found in _COLUMN.finditer(columns)]
        table = MadeTable(entry["_id"].partition(".")[2], read)
        if not table.name.startswith("sqlite_"):
            tables[entry["db_id"]].append(table)
    for name, queries in asked.items():
        made = MadeDatabase(name, tables[name], [], len(queries))
        _fill(made.tables, [query["sql"] for query in queries])
        with sqlite3.connect(":memory:") as database:
            for table in made.tables:
                _create(database, table)
            for query in queries:
                if (expected := _expected(query["sql"], database)) is not None:
                    made.questions.append({"question": query["text"], **expected})
        if made.questions:
            yield made


# Rows


def _fill(tables: Sequence[MadeTable], statements: Iterable[str]) -> None:
    """Make the rows: with the values that statements compare with, so that some rows fit."""
    compared: defaultdict[str, set[str]] = defaultdict(set)
    names = {name.lower() for table in tables for name, _, _ in table.columns}
    for statement in statements:
        for each in _parsed(statement).find_all(exp.EQ, exp.NEQ, exp.GT, exp.LT, exp.GTE, exp.LTE):
            value = each.expression
            # SQLite reads "x" as a text where it is no column.
            is_value = isinstance(value, exp.Literal | exp.Column)
            if isinstance(each.this, exp.Column) and is_value and value.name.lower() not in names:
                compared[each.this.name.lower()].add(value.name)
    for table in tables:
        random = Random(table.name)
        columns = [
            _cells(random, name, type_, _once(compared[name.lower()]))
            for name, _, type_ in table.columns
        ]
        table.rows = [list(row) for row in zip(*columns, strict=True)]


def _cells(random: Random, name: str, type_: str, compared: Sequence[str]) -> list[Cell]:
    """The cells of a column."""
    plain = name.lower()
    if type_ == "number":
        if plain.endswith("id"):
            return list(range(1, ROWS + 1))
        if "year" in plain:
            return [
                random.choice([*map(int, filter(str.isdigit, compared)), *range(1990, 2020)])
                for _ in range(ROWS)
            ]
        numbers = [int(float(each)) for each in compared if _is_number(each)] or [500]
        least, most = min(numbers) // 2, max(numbers) * 2 + 20
        made = random.sample(range(least, most + ROWS), ROWS)
        return [*numbers[: ROWS // 4], *made][:ROWS]
    is_name = plain in ("name", "title") or plain.endswith(("_name", "_title", "id"))
    values = [*compared]
    while len(values) < (ROWS if is_name else len(compared) + 4):
        word = "".join(random.choices(_SYLLABLES, k=3)).capitalize()
        if word not in values:
            values.append(word)
    if is_name:
        random.shuffle(values)
        return list(values[:ROWS])
    # Some values more often than others, so that one is first.
    weights = range(len(values) + 1, 1, -1)
    return list(random.choices(values, weights=weights, k=ROWS))


def _once(values: Iterable[str]) -> list[str]:
    """The values, each in one spelling."""
    return sorted({value.lower(): value for value in sorted(values, reverse=True)}.values())


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?", text) is not None


def _create(database: sqlite3.Connection, table: MadeTable) -> None:
    columns = ", ".join(
        f'"{name}" {"NUMERIC" if type_ == "number" else "TEXT COLLATE NOCASE"}'
        for name, _, type_ in table.columns
    )
    database.execute(f'CREATE TABLE "{table.name}" ({columns})')
    places = ", ".join("?" * len(table.columns))
    database.executemany(f'INSERT INTO "{table.name}" VALUES ({places})', table.rows)


# Answers


def _parsed(statement: str) -> exp.Expression:
    return sqlglot.parse_one(statement, read="sqlite")


def _expected(statement: str, database: sqlite3.Connection) -> Mapping[str, Any] | None:
    """What a question expects; None where it is none of the kinds, or has several right answers."""
    parsed = _parsed(statement)
    if (
        not isinstance(parsed, exp.Select)
        or parsed.find(exp.Join)
        or parsed.args.get("having")
        or len(list(parsed.find_all(exp.Select))) > 1
    ):
        return None
    try:
        rows = database.execute(statement).fetchall()
    except sqlite3.Error:  # a column is called otherwise
        return None
    if not rows or any(None in row for row in rows):
        return None
    return _answer(parsed, rows, database)


def _answer(
    parsed: exp.Select, rows: Sequence[tuple[Any, ...]], database: sqlite3.Connection
) -> Mapping[str, Any] | None:
    selected = parsed.expressions
    aggregates = [isinstance(each, _AGGREGATES) for each in selected]
    group, limit, where = (parsed.args.get(each) for each in ("group", "limit", "where"))
    if aggregates == [True] and not group:
        return {"kind": selected[0].key, "value": rows[0][0]}
    if sorted(aggregates) == [False, True] and group and not limit:
        at = aggregates.index(False)
        return {"kind": "groups", "groups": {str(row[at]): row[1 - at] for row in rows}}
    is_settled = bool(limit) and _is_settled(parsed, rows, database)
    if aggregates == [False] and isinstance(selected[0], exp.Column):
        if group and is_settled:
            return {"kind": "first group", "value": rows[0][0]}
        if not group and (where or is_settled) and len(rows) <= ROWS // 2:
            return {"kind": "rows", "values": [str(row[0]) for row in rows]}
    return None


def _is_settled(
    parsed: exp.Select, rows: Sequence[tuple[Any, ...]], database: sqlite3.Connection
) -> bool:
    """Whether no row after the last one is equal to it in what is ordered by."""
    order = parsed.args.get("order")
    if order is None:
        return False
    more = parsed.copy()
    more.set("expressions", [order.expressions[0].this.copy()])
    more.set("limit", exp.Limit(expression=exp.Literal.number(len(rows) + 1)))
    values = database.execute(more.sql("sqlite")).fetchall()
    return len(values) == len(rows) or values[-1] != values[-2]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def main(arguments: Sequence[str]) -> None:
    source, out = map(Path, arguments)
    for made in made_databases(source):
        made.write(out / made.name)
        print(f"{made.name}: {len(made.questions)} of {made.asked} questions")


if __name__ == "__main__":
    main(sys.argv[1:])
