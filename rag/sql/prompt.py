"""What a chat model is told to write SQL by, and how its reply is read. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence

from documents.catalogue.tables import Table
from rag.sql.finding import Described

#: Of one table. What is longer is told by the names and types of its columns alone.
MAX_TABLE_CHARACTERS = 3_000
MOST_COLUMNS = 300

RULES = """\
You write SQL that answers a question from a database. Each block below describes one table under \
its number; blocks with another “database” belong to another database.

Rules:
- Write one SELECT statement (WITH is allowed) that only reads, {dialect}.
- Use only tables and columns that the blocks name, spelt as they are there, and tables of one \
database only. Put names that are no plain words in quotes.
- Answer with the statement alone, in a block that begins with ```sql and ends with ```.
- If the tables do not hold what the question asks for, write exactly: {not_found}\
"""
AGAIN = """\
That statement does not fit the tables: {reason}

Write it anew, by the same rules.\
"""
NO_SQL = "There is no SQL statement in the reply. Write one, in a block that begins with ```sql."

_FENCED = re.compile(r"```[ \t]*(?:\w+)?[ \t]*\r?\n(.*?)(?:\r?\n[ \t]*```|\Z)", re.DOTALL)
_BEGINS = re.compile(r"^[ \t]*(?:\(\s*)*(?:SELECT|WITH)\b", re.IGNORECASE | re.MULTILINE)
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)


def rules(*, dialect: str, not_found: str) -> str:
    """How to write it."""
    of = f"in the dialect of {dialect}" if dialect else "in standard SQL"
    return RULES.format(dialect=of, not_found=not_found)


def told(described: Described) -> tuple[str, str]:
    """A table as (heading, text); the number in the heading is that of its citations."""
    heading = (
        f"[{described.passage.number}] table {described.table.name},"
        f" database “{described.database}”"
    )
    if len(described.text) <= MAX_TABLE_CHARACTERS:
        return heading, described.text
    return heading, _columns(described.table)


def fitting(
    tables: Sequence[Described], *, budget: int, count: Callable[[str], int]
) -> list[Described]:
    """The first tables that fit into so many tokens, at least one."""
    kept: list[Described] = []
    for described in tables:
        budget -= count("\n".join(told(described))) + 20
        if budget < 0 and kept:
            break
        kept.append(described)
    return kept


def statement_in(reply: str) -> str:
    """The SQL of a reply; empty where it holds none."""
    text = _THINKING.sub("", reply)
    for block in _FENCED.findall(text):
        if _BEGINS.search(block):
            return str(block).strip()
    if fenced := [block.strip() for block in _FENCED.findall(text) if block.strip()]:
        return str(fenced[0])
    begins = _BEGINS.search(text)
    return text[begins.start() :].strip().rstrip("`").strip() if begins else ""


def _columns(table: Table) -> str:
    names: Iterable[str] = (
        f"{column.name} {column.type}".strip() for column in table.columns[:MOST_COLUMNS]
    )
    more = len(table.columns) - MOST_COLUMNS
    rest = [f"and {more} more"] if more > 0 else []
    return f"Columns: {', '.join([*names, *rest])}"
