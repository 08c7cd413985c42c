"""Tables as a language model sees them: views with readable names, and what each is made of. Begin
with `offer_views`."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonpath

from django.db import connection
from psycopg import sql

from common.sql import fetch_rows
from common.text import json_quoted, truncated
from documents.catalogue import tables as catalogue
from tables.questions.matching import SchemaIndex
from tables.questions.plan import Column, TableSchema
from tables.questions.shapes import Shape, shapes_of
from tables.questions.words import Question
from tables.rows import row_source

#: Of the tables that may be asked, how many are offered; of each, how many columns.
MAX_VIEWS, MAX_COLUMNS = 40, 60
#: Values that are shown of a column, and how long they may be.
MAX_SAMPLES, MAX_SAMPLE_CHARACTERS = 5, 40
#: Identifiers of PostgreSQL have up to 63 bytes.
_MAX_NAME_BYTES = 60
#: The column that names the file of a row, and the one by which a row is found again, as
#: `table:ordinal`. The second is never offered: no offered name begins with an underscore.
FILE, ROW = "file", "_row"
_SQL_TYPES = {"number": "double precision", "date": "date", "boolean": "boolean", "text": "text"}


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column by the identifier that stands for it. `position` counts the table's columns from 1;
    0 is the name of the file."""

    name: str
    position: int
    column: Column
    samples: tuple[str, ...] = ()

    @property
    def sql_type(self) -> str:
        """Its type in PostgreSQL."""
        return _SQL_TYPES[self.column.type]


@dataclass(frozen=True, slots=True)
class View:
    """Tables with the same columns, which are asked as one. `files` are their names by table id."""

    name: str
    columns: tuple[ViewColumn, ...]
    files: Mapping[int, str]

    @property
    def as_catalogued(self) -> catalogue.Table:
        """What names are checked against."""
        return catalogue.Table(
            catalogue.TableName("", self.name),
            tuple(catalogue.Column(each.name, each.sql_type) for each in self.columns),
        )

    def describe(self) -> str:
        """Name, types, units and samples, for the prompt. All that stands in documents is quoted
        and shortened."""
        lines = [f"{self.name} ({len(self.files)} tables of the same columns)"]
        if len(self.files) == 1:
            lines = [self.name]
        for each in self.columns:
            line = f"  {sql_identifier(each.name)} {each.sql_type}"
            if each.column.unit:
                line += f", in {json_quoted(truncated(each.column.unit, 20))}"
            if each.column.least and each.column.most:
                line += f", from {each.column.least} to {each.column.most}"
            elif each.samples:
                line += f", such as {', '.join(map(json_quoted, each.samples))}"
            lines.append(line)
        return "\n".join(lines)

    def statement(self, names: Collection[str], *, with_row: bool = False) -> str:
        """The SELECT that the view is made of, with the columns in `names`, and perhaps `ROW`. It
        reads the tables by their ids."""
        used = [each for each in self.columns if each.name in names and each.position]
        letters: dict[str, list[int]] = {"c": [], "n": [], "d": []}
        selected = []
        if with_row:
            selected.append(f"source.table_id || ':' || source.ordinal AS {sql_identifier(ROW)}")
        for each in used:
            letter = {"number": "n", "boolean": "n", "date": "d"}.get(each.column.type, "c")
            letters[letter].append(each.position)
            value = f"source.{letter}{each.position}"
            if each.column.type == "boolean":
                value = f"({value} = 1)"
            elif letter == "c":
                value = f"nullif(btrim({value}), '')"
            selected.append(f"{value} AS {sql_identifier(each.name)}")
        ids = f"'{{{','.join(str(int(each)) for each in self.files)}}}'"
        source = row_source(cells=letters["c"], numbers=letters["n"], dates=letters["d"])
        statement = f" FROM {source.replace('%(tables)s', ids)} AS source"
        if FILE in names:
            files = ", ".join(
                f"({int(pk)}::bigint, {sql_literal(name)}::text)" for pk, name in self.files.items()
            )
            statement += f" JOIN (VALUES {files}) AS named (id, file) ON named.id = source.table_id"
            selected.append(f"named.file AS {sql_identifier(FILE)}")
        return f"SELECT {', '.join(selected)}{statement}"


def sql_identifier(name: str) -> str:
    """In double quotes."""
    return sql.Identifier(name).as_string()


def sql_literal(text: str) -> str:
    """In single quotes."""
    return sql.Literal(text).as_string()


def offer_views(
    tables: Sequence[TableSchema], question: Question, *, files: Mapping[int, str]
) -> list[View]:
    """The views that fit the question best, the best first. Each has the columns that the question
    names, and the first others. `files` are the names of the tables' files by table id."""
    ranked: list[tuple[int, int, Shape, set[int]]] = []
    # Tables of a group may have other columns at each place: only equal ones are one view.
    for shape in shapes_of([replace(table, group=None, places=()) for table in tables]):
        matches = SchemaIndex(shape, question).matches(question)
        named = {at for each in matches if each.kind != "table" for at in each.columns}
        strength = sum(each.strength * (each.end - each.start) for each in matches)
        ranked.append((-strength, len(ranked), shape, named))
    ranked.sort(key=lambda each: each[:2])
    views: list[View] = []
    for _, _, shape, named in ranked[:MAX_VIEWS]:
        own = _file_names(shape.tables, files)
        name = _view_name(shape, [files[each.id] for each in shape.tables])
        name = _distinct(name, [view.name for view in views], "_{}")
        views.append(_view(name, shape, named, own))
    return _with_samples(views)


def _view(name: str, shape: Shape, named: set[int], files: Mapping[int, str]) -> View:
    order = sorted(range(len(shape.columns)), key=lambda at: (at not in named, at))
    columns: list[ViewColumn] = []
    names = [FILE, ROW]
    for at in sorted(order[:MAX_COLUMNS]):
        column = shape.columns[at]
        identifier = _distinct(_column_name(column.name, at), names, " ({})")
        names.append(identifier)
        samples = tuple(
            truncated(value, MAX_SAMPLE_CHARACTERS) for value in column.values[:MAX_SAMPLES]
        )
        columns.append(ViewColumn(identifier, at + 1, column, samples))
    samples = tuple(
        truncated(each, MAX_SAMPLE_CHARACTERS) for each in dict.fromkeys(files.values())
    )[:MAX_SAMPLES]
    columns.append(ViewColumn(FILE, 0, Column(FILE), samples))
    return View(name, tuple(columns), files)


def _file_names(tables: Sequence[TableSchema], files: Mapping[int, str]) -> dict[int, str]:
    """The name of the file of each table, with that of the sheet where a file has several."""
    often = Counter(files[each.id] for each in tables)
    return {
        each.id: f"{file}: {each.name}" if often[file] > 1 and each.name else file
        for each in tables
        for file in [files[each.id]]
    }


def _view_name(shape: Shape, files: Sequence[str]) -> str:
    """Of one table its file's name; of several what their names have in common, or the first's."""
    stems = [_slug(file.rsplit(".", 1)[0]) for file in files]
    common = commonpath([stem.replace("_", "/") for stem in stems]).replace("/", "_")
    names = {_slug(each.name) for each in shape.tables}
    candidates = (common, names.pop() if len(names) == 1 else "", stems[0])
    return next((each for each in candidates if each.strip("_")), "tables")


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:40].rstrip("_")
    return f"t_{slug}" if slug[:1].isdigit() else slug


def _column_name(header: str, at: int) -> str:
    """The header without what makes identifiers hard to write, in at most 60 bytes; names that
    begin with an underscore are ours."""
    plain = "".join(c if c.isprintable() and c not in '"\\' else " " for c in header)
    name = (
        " ".join(plain.split())
        .lstrip("_")
        .encode()[:_MAX_NAME_BYTES]
        .decode(errors="ignore")
        .strip()
    )
    return name or f"column {at + 1}"


def _distinct(name: str, taken: Sequence[str], suffix: str) -> str:
    """The name, numbered where another has it, whatever its case."""
    folded = {each.casefold() for each in taken}
    number, found = 1, name
    while found.casefold() in folded:
        number += 1
        ending = suffix.format(number)
        found = name.encode()[: _MAX_NAME_BYTES - len(ending)].decode(errors="ignore") + ending
    return found


_NUMBERS = """
    SELECT table_id, position, numbers[1:3]
    FROM tables_columnblock
    WHERE table_id = ANY(%(tables)s::bigint[]) AND ordinal = 0 AND numbers IS NOT NULL
"""


def _with_samples(views: Sequence[View]) -> list[View]:
    """With the first numbers of their first tables."""
    firsts = {view.name: next(iter(view.files)) for view in views}
    numbers = {
        (table, position): [each for each in found if each is not None]
        for table, position, found in fetch_rows(
            connection, _NUMBERS, {"tables": list(firsts.values())}
        )
    }

    def sampled(view: View, each: ViewColumn) -> ViewColumn:
        if each.column.type != "number":
            return each
        values = numbers.get((firsts[view.name], each.position), ())
        return replace(each, samples=tuple(f"{value:.10g}" for value in values))

    return [
        replace(view, columns=tuple(sampled(view, each) for each in view.columns)) for view in views
    ]
