"""The classes and functions of source code, with where they begin and end."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import pairwise

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from documents.parsers.code_grammars import GRAMMARS, LINE_PATTERNS
from documents.parsers.sql_statements import Statement, statements

#: A tree takes some twenty times the memory of its source; longer files are data or generated.
MAX_CHARACTERS = 4_000_000
_MAX_NAME = 200
#: Nodes around a block. What is deeper is local to something, and deep trees take quadratic time.
_MAX_DEPTH = 100
_MAX_ERROR_CHILDREN = 2_000

#: Kinds whose inside is not looked at: what is local to a function is part of it.
LEAVES = frozenset({"function", "method"})
#: Nodes that only dress up the declaration in them.
_WRAPPERS = frozenset(
    {
        "decorated_definition", "export_statement", "ambient_declaration", "template_declaration",
        "expression_statement", "lexical_declaration", "variable_declaration", "type_declaration",
    }
)  # fmt: skip
#: What stands before a declaration and speaks of it.
_LEADING = frozenset(
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
    """Blocks in the order of their starts, an outer one before those in it; empty if none is known.

    `language` is a name in `code_languages`. Source with errors gives the blocks that can be made
    out. Takes about 0.2 s a megabyte; a text of more than four million characters gives none.
    """
    if len(text) > MAX_CHARACTERS:
        return []
    if language in GRAMMARS:
        return _nested(_parsed_blocks(text, language))
    if language == "sql":
        return sql_blocks(list(statements(text)))
    pattern = LINE_PATTERNS.get(language)
    return _line_blocks(text, pattern) if pattern else []


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
    if _is_wreckage(root):
        return []
    cursor = QueryCursor(_query_of(language))
    cursor.set_max_start_depth(_MAX_DEPTH)
    for _, captures in cursor.matches(root):
        names, owners = captures.pop("name", []), captures.pop("owner", [])
        for kind, nodes in captures.items():
            name = _name(nodes[0], names[0] if names else None, owners[0] if owners else None)
            found.append((*_extent(nodes[0]), name, kind))
    at = _characters(data, text, {edge for start, end, *_ in found for edge in (start, end)})
    return [
        CodeBlock(_line_start(text, at[start]), _statement_end(text, at[end]), name, kind, 0)
        for start, end, name, kind in found
    ]


def _is_wreckage(root: Node) -> bool:
    """Whether the source makes so little sense that to look for blocks takes quadratic time."""
    broken = [root] if root.has_error else []
    while broken:
        node = broken.pop()
        if node.is_error and node.child_count > _MAX_ERROR_CHILDREN:
            return True
        broken += (child for child in node.children if child.has_error)
    return False


def _name(block: Node, name: Node | None, owner: Node | None) -> str:
    if name is None:
        return _one_line(_text(block).partition("{")[0].partition("(")[0])
    while inner := _declared(name):
        name = inner
    receiver = _RECEIVER.search(_text(owner)) if owner else None
    return _one_line(f"{receiver[1]}.{_text(name)}" if receiver else _text(name))


def _declared(node: Node) -> Node | None:
    """C wraps a name into its pointers and parameters."""
    if node.type in {"parenthesized_declarator", "reference_declarator"}:
        return node.named_child(0)
    return node.child_by_field_name("declarator")


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _one_line(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME]


def _extent(node: Node) -> tuple[int, int]:
    """Bytes of the declaration with all that belongs to it."""
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    first = node
    while (before := first.prev_sibling) is not None and before.type in _LEADING:
        above = before.prev_sibling
        shares_line = above is not None and above.end_point.row == before.start_point.row
        if before.end_point.row + 1 < first.start_point.row or (
            shares_line and above is not None and above.type not in _LEADING
        ):
            break
        first = before
    return first.start_byte, node.end_byte


def _characters(data: bytes, text: str, offsets: set[int]) -> dict[int, int]:
    """Byte offsets to character offsets."""
    if len(data) == len(text):
        return {offset: offset for offset in offsets}
    places, characters = {0: 0}, 0
    for before, after in pairwise(sorted(offsets | {0})):
        characters += len(data[before:after].decode())
        places[after] = characters
    return places


def _line_start(text: str, offset: int) -> int:
    start = text.rfind("\n", 0, offset) + 1
    return start if not text[start:offset].strip() else offset


def _statement_end(text: str, offset: int) -> int:
    while offset and text[offset - 1] == "\n":
        offset -= 1
    closing = _CLOSING.match(text, offset)
    return offset if closing is None else offset + len(closing[0].rstrip())


def _nested(blocks: Iterable[CodeBlock]) -> list[CodeBlock]:
    """In order, with levels, without what is local to a function."""
    kept: list[CodeBlock] = []
    around: list[CodeBlock] = []
    for block in sorted(blocks, key=lambda block: (block.start, -block.end)):
        while around and around[-1].end <= block.start:
            around.pop()
        outer = around[-1] if around else None
        if outer and (outer.kind in LEAVES or block.end > outer.end or block.start == outer.start):
            continue
        around.append(block)
        kept.append(replace(block, level=len(around)))
    return kept


def sql_blocks(script: Sequence[Statement]) -> list[CodeBlock]:
    """What a script defines: statements about one thing that follow one another are one block."""
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


def _line_blocks(text: str, pattern: re.Pattern[str]) -> list[CodeBlock]:
    matches = list(pattern.finditer(text))
    starts = [*(match.start() for match in matches), len(text)]
    return [
        CodeBlock(start, _visible_end(text, end), _one_line(match[1]), "section", 1)
        for match, (start, end) in zip(matches, pairwise(starts), strict=True)
    ]


def _visible_end(text: str, end: int) -> int:
    while text[end - 1].isspace():
        end -= 1
    return end
