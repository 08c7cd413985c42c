"""Source code, configuration files and SQL scripts: the text as it is, with classes, functions and
tables as headings. Begin with `code_blocks`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from reading.code_languages import GRAMMARS, LINE_PATTERNS, language_of_file_name
from reading.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from reading.parsers.normalise import decode_nonblank, normalise_text
from reading.parsers.sql_statements import Statement, split_statements

#: A tree takes some twenty times the memory of its source; longer files are data or generated.
MAX_CHARACTERS = 4_000_000
_MAX_NAME = 200
#: Nodes around a block. What is deeper is local to something, and deep trees take quadratic time.
_MAX_DEPTH = 100
_MAX_ERROR_CHILDREN = 2_000

#: Kinds whose inside is not looked at: what is local to a function is part of it.
OPAQUE_KINDS = frozenset({"function", "method"})
#: Nodes that only dress up the declaration in them.
_WRAPPER_NODES = frozenset(
    {
        "decorated_definition", "export_statement", "ambient_declaration", "template_declaration",
        "expression_statement", "lexical_declaration", "variable_declaration", "type_declaration",
    }
)  # fmt: skip
#: Comments and decorators that precede a declaration.
_LEADING_NODES = frozenset(
    {
        "comment", "line_comment", "block_comment", "multiline_comment", "doc_comment",
        "attribute_item", "decorator",
    }
)  # fmt: skip
_ROUTINES = frozenset({"function", "procedure", "trigger"})
_RECEIVER = re.compile(r"(\w+)(?:\[[^\[\]]*\])?\s*,?\s*\)\Z")
_CLOSING = re.compile(r"[ \t]*[;,]?[ \t]*(?=\n|\Z)")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A class, function or the like: `text[start:end]`, with the comments and decorators above it.

    `start` is the start of a line unless code stands before it there; `end` is behind its last
    character. `kind` is such as "class", "function", "method", "impl", "section". `level` is 1 for
    an outermost block, and one more for each block around it. Nothing inside a function or method
    is a block.
    """

    start: int
    end: int
    name: str
    kind: str
    level: int


def code_blocks(text: str, language: str) -> list[CodeBlock]:
    """Blocks in the order of their starts, an outer one before its inner ones; empty if the
    language is unknown.

    `language` is a name in `code_languages`. Source with errors gives the blocks that can be
    recognised. Takes about 0.2 s a megabyte; a text of more than four million characters gives
    none.
    """
    if len(text) > MAX_CHARACTERS:
        return []
    if language in GRAMMARS:
        # Sorted, with levels, without blocks inside a function.
        blocks = _parsed_blocks(text, language)
        kept: list[CodeBlock] = []
        around: list[CodeBlock] = []
        for block in sorted(blocks, key=lambda block: (block.start, -block.end)):
            while around and around[-1].end <= block.start:
                around.pop()
            outer = around[-1] if around else None
            if outer and (
                outer.kind in OPAQUE_KINDS or block.end > outer.end or block.start == outer.start
            ):
                continue
            around.append(block)
            kept.append(replace(block, level=len(around)))
        return kept
    if language == "sql":
        return sql_blocks(list(split_statements(text)))
    pattern = LINE_PATTERNS.get(language)
    matches = list(pattern.finditer(text)) if pattern else []
    starts = [*(match.start() for match in matches), len(text)]
    return [
        CodeBlock(start, start + len(text[start:end].rstrip()), _one_line(match[1]), "section", 1)
        for match, (start, end) in zip(matches, pairwise(starts), strict=True)
    ]


@cache
def grammar_of(language: str) -> Language:
    """The grammar of one of GRAMMARS."""
    grammar = GRAMMARS[language]
    return Language(getattr(import_module(grammar.module), grammar.function)())


@cache
def _query_of(language: str) -> Query:
    return Query(grammar_of(language), GRAMMARS[language].query)


def _parsed_blocks(text: str, language: str) -> list[CodeBlock]:
    """Every block that the query finds, with level 0, in no order."""
    data = text.encode()
    found = []
    root = Parser(grammar_of(language)).parse(data).root_node
    if _is_mostly_errors(root):
        return []
    cursor = QueryCursor(_query_of(language))
    cursor.set_max_start_depth(_MAX_DEPTH)
    for _, captures in cursor.matches(root):
        names, owners = captures.pop("name", []), captures.pop("owner", [])
        for kind, nodes in captures.items():
            node = nodes[0]
            name = _block_name(node, names[0] if names else None, owners[0] if owners else None)
            # Bytes of the declaration with its comments and decorators.
            while node.parent is not None and node.parent.type in _WRAPPER_NODES:
                node = node.parent
            first = node
            while (before := first.prev_sibling) is not None and before.type in _LEADING_NODES:
                above = before.prev_sibling
                shares_line = above is not None and above.end_point.row == before.start_point.row
                if before.end_point.row + 1 < first.start_point.row or (
                    shares_line and above is not None and above.type not in _LEADING_NODES
                ):
                    break
                first = before
            found.append((first.start_byte, node.end_byte, name, kind))
    at = _character_offsets(data, text, {edge for start, end, *_ in found for edge in (start, end)})
    blocks = []
    for first_byte, end_byte, name, kind in found:
        start, end = at[first_byte], at[end_byte]
        line = text.rfind("\n", 0, start) + 1
        if not text[line:start].strip():
            start = line
        while end and text[end - 1] == "\n":
            end -= 1
        if closing := _CLOSING.match(text, end):
            end += len(closing[0].rstrip())
        blocks.append(CodeBlock(start, end, name, kind, 0))
    return blocks


def _is_mostly_errors(root: Node) -> bool:
    """Whether the source has so many errors that finding blocks takes quadratic time."""
    broken = [root] if root.has_error else []
    while broken:
        node = broken.pop()
        if node.is_error and node.child_count > _MAX_ERROR_CHILDREN:
            return True
        broken += (child for child in node.children if child.has_error)
    return False


def _block_name(block: Node, name: Node | None, owner: Node | None) -> str:
    if name is None:
        return _one_line(_node_text(block).partition("{")[0].partition("(")[0])
    # C wraps the name's node into pointers and parameters.
    while inner := (
        name.named_child(0)
        if name.type in {"parenthesized_declarator", "reference_declarator"}
        else name.child_by_field_name("declarator")
    ):
        name = inner
    receiver = _RECEIVER.search(_node_text(owner)) if owner else None
    return _one_line(f"{receiver[1]}.{_node_text(name)}" if receiver else _node_text(name))


def _node_text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _one_line(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME]


def _character_offsets(data: bytes, text: str, offsets: set[int]) -> dict[int, int]:
    """Byte offsets to character offsets."""
    if len(data) == len(text):
        return {offset: offset for offset in offsets}
    places, characters = {0: 0}, 0
    for before, after in pairwise(sorted(offsets | {0})):
        characters += len(data[before:after].decode())
        places[after] = characters
    return places


def sql_blocks(script: Sequence[Statement]) -> list[CodeBlock]:
    """Objects that a script defines; consecutive statements about one object are one block."""
    blocks: list[CodeBlock] = []
    for statement in script:
        last = blocks[-1] if blocks else None
        # The body of a procedure is full of statements, and its end is a dialect's own affair.
        goes_on = last and (
            last.name == statement.name or (last.kind in _ROUTINES and not statement.is_ddl)
        )
        if last and goes_on:
            blocks[-1] = replace(last, end=statement.end)
        elif statement.kind:
            blocks.append(
                CodeBlock(statement.start, statement.end, statement.name, statement.kind, 1)
            )
    return blocks


#: Data written as code may have more names than text.
MAX_HEADINGS = 20_000
MAX_TABLES = 2_000
_CLOSING_ONLY = re.compile(r"[\s\])};,]*(?:\bend\b[\s;]*)*\Z")


def parse_code(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """The programming language that `name` tells. A chunk's heading path is `Class > method`.

    A SQL script that mostly defines tables is a schema, and `metadata.tables` lists them.
    """
    text = decode_nonblank(data)
    title = file_title(name)
    language = language_of_file_name(name)
    if language is None:
        raise ParseError(
            "unsupported", f"{title} does not have the suffix of a programming language."
        )
    metadata: dict[str, Any] = {"language_name": language.label}
    if language.name == "sql":
        script = list(split_statements(text)) if len(text) <= MAX_CHARACTERS else []
        blocks = sql_blocks(script)
        # Names of created tables and views as they are written, each once.
        created = (entry.name for entry in script if entry.kind in {"table", "view"})
        tables = list(dict.fromkeys(created))[:MAX_TABLES]
        defining = sum(entry.end - entry.start for entry in script if entry.is_ddl)
        total = sum(entry.end - entry.start for entry in script)
        if tables and defining * 2 >= total:
            metadata["tables"] = tables
    else:
        blocks = code_blocks(text, language.name)
    return ParsedDocument(
        text=text,
        media_type=language.media_type,
        title=title,
        headings=block_headings(text, blocks, title=title),
        metadata=metadata,
    )


def file_title(name: str) -> str:
    """The file's own name with its suffix, which people search for."""
    return normalise_text(PurePosixPath(name.replace("\\", "/")).name).strip() or "Untitled"


def block_headings(text: str, blocks: Sequence[CodeBlock], *, title: str) -> tuple[Heading, ...]:
    """A heading where each block begins, and where the text continues after inner blocks.

    Such a remainder belongs to the enclosing block again, at the outermost level to `title`.
    """
    if len(blocks) > MAX_HEADINGS:
        return ()
    headings: list[Heading] = []
    around: list[CodeBlock] = []
    for block in blocks:
        headings += _remainder_headings(text, around, block.start, title)
        headings.append(Heading(block.start, block.level, block.name))
        around.append(block)
    headings += _remainder_headings(text, around, len(text), title)
    return tuple(headings)


def _remainder_headings(
    text: str, around: list[CodeBlock], upto: int, title: str
) -> Iterator[Heading]:
    """Close the blocks that end before `upto`; yields a heading for each remainder after them."""
    while around and around[-1].end <= upto:
        left = around.pop()
        end = min(upto, around[-1].end) if around else upto
        rest = text[left.end : end]
        if not _CLOSING_ONLY.match(rest):
            outer = around[-1].name if around else title
            # Start of the first line with text; the end of the block if that is on its line.
            shown = left.end + len(rest) - len(rest.lstrip())
            first_line = max(left.end, text.rfind("\n", left.end, shown) + 1)
            yield Heading(first_line, max(1, left.level - 1), outer)
