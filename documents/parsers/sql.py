"""SQL scripts: the text as it is, with the tables and other things they define as headings."""

from collections.abc import Sequence

from documents.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from documents.parsers.code import block_headings, file_title
from documents.parsers.code_blocks import MAX_CHARACTERS, sql_blocks
from documents.parsers.normalise import decode_text
from documents.parsers.sql_statements import Statement, statements

MAX_TABLES = 2_000


class SqlParser:
    """A script that mostly defines tables is a schema, and `metadata.tables` lists them."""

    media_types: tuple[str, ...] = ("text/x-sql",)
    suffixes: tuple[str, ...] = (".sql", ".ddl")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        text = decode_text(data)
        if not text.strip():
            raise ParseError("empty", "The file has no text. Check that it was saved.")
        title = file_title(name)
        script = list(statements(text)) if len(text) <= MAX_CHARACTERS else []
        tables = defined_tables(script)
        return ParsedDocument(
            text=text,
            media_type="text/x-sql",
            title=title,
            headings=block_headings(text, sql_blocks(script), title=title),
            metadata={"language_name": "SQL"} | ({"tables": tables} if is_schema(script) else {}),
        )


def defined_tables(script: Sequence[Statement]) -> list[str]:
    """Names of the tables and views that are created, as they are written, each once."""
    created = (entry.name for entry in script if entry.kind in {"table", "view"})
    return list(dict.fromkeys(created))[:MAX_TABLES]


def is_schema(script: Sequence[Statement]) -> bool:
    """Whether tables are created and at least half of the text is about definitions."""
    defining = sum(entry.end - entry.start for entry in script if entry.is_ddl)
    return bool(defined_tables(script)) and defining * 2 >= sum(
        entry.end - entry.start for entry in script
    )
