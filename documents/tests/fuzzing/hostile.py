"""Files that were made to do harm, as small as they may be to do it."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping

from reading.tests.factories_books import epub, odf
from reading.tests.factories_files import chunk_json, pdf
from reading.tests.factories_office import (
    changed,
    docx,
    lying_about_size,
    pptx,
    sheet_xml,
    xlsx,
    zipped,
)

DEEP = 10_000
#: Characters of those that are long: a line, a cell, a quotation that never ends.
LONG = 5_000_000
_LAUGHS = "".join(f'<!ENTITY l{at + 1} "{f"&l{at};" * 10}">' for at in range(9))
_DTD = f'<!DOCTYPE x [<!ENTITY l0 "ha">{_LAUGHS}]>'
_XXE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'


def nested_zip(times: int) -> bytes:
    data = b"A text, far inside."
    for _ in range(times):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.zip", data)
        data = buffer.getvalue()
    return data


def _meta(charset: str) -> bytes:
    return f"<html><meta charset={charset}><p>".encode() + b"Words and more words. " * 9000


def _chunk(**changes: object) -> bytes:
    return chunk_json(**changes)


def hostile(long: int = LONG) -> Mapping[str, Callable[[], bytes]]:
    """By name; each is a passage or a named failure within its limit, and none does harm."""
    return _nested() | _long(long) | _packed(long) | _defining() | _letters(long)


def _nested() -> dict[str, Callable[[], bytes]]:
    return {
        "deep.html": lambda: b"<html>" + b"<div>" * DEEP + b"x",
        "deep-lists.html": lambda: b"<html>" + b"<ul><li>" * DEEP + b"x",
        "deep-tables.html": lambda: b"<html>" + b"<table><tr><td>" * (DEEP // 5) + b"x",
        "deep-bold.html": lambda: b"<html>" + b"<b>" * DEEP + b"x",
        "open-bold.html": lambda: b"<html>" + b"<b><p>x" * 3000,
        "deep.rtf": lambda: rb"{\rtf1 " + b"{" * DEEP,
        "deep.json": lambda: b"[" * DEEP + b"1" + b"]" * DEEP,
        "deep-names.json": lambda: b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "deep_chunk_1.json": lambda: b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "deep.yaml": lambda: b"[" * DEEP,
        "deep-matter.md": lambda: b"---\na: " + b"[" * DEEP + b"\n---\nText.\n",
        "laughing-matter.md": lambda: (
            "---\na0: &a0 [x, x]\n"
            + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))
            + "---\nText.\n"
        ).encode(),
        "merging-matter.md": lambda: (
            "---\na0: &a0 {k0: 1}\n"
            + "".join(
                f"a{n + 1}: &a{n + 1} {{<<: [{', '.join([f'*a{n}'] * 9)}], k{n + 1}: 1}}\n"
                for n in range(8)
            )
            + "---\nText.\n"
        ).encode(),
        "huge-matter.md": lambda: f"---\na: {'9' * 5000}\nb: 0x{'f' * 5000}\n---\nText.\n".encode(),
        "clock-matter.md": lambda: f"---\na: {':'.join(['1'] * 9000)}\n---\nText.\n".encode(),
        "odd-matter.md": lambda: (
            b"---\n? [a, b]\n: 1\n.nan: .inf\n2024-13-45: 9999-99-99\n~: !!binary aGk=\n"
            b"x: !!python/object/apply:os.system [ls]\n---\nText.\n"
        ),
        "odd-keys.md": lambda: b"---\n? [a, b]\n: 1\n.nan: .inf\n1.5: !!set {a, b}\n---\nText.\n",
        "deep-quotes.md": lambda: b">" * DEEP + b" x",
        "deep-lists.md": lambda: b"".join(b" " * n + b"- x\n" for n in range(2000)),
        "deep-brackets.md": lambda: b"# " + b"[" * DEEP + b"x" + b"](y)" * DEEP,
        "deep-stars.md": lambda: b"# " + b"*a **b " * DEEP,
        "ticks.md": lambda: b"# " + b" ".join(b"`" * n for n in range(1, 400)),
        "comments.md": lambda: b"<!-- a --> " * 20_000 + b"x",
        "open-comments.md": lambda: b"<!--\n" * 20_000 + b"x",
        "references.md": lambda: b"[a]: b\n" * 4_000 + b"x",
        "wide-table.md": lambda: b"|" * 20_000 + b"\n" + b"|-" * 20_000 + b"|\n" + b"|\n" * 2000,
        "deep.py": lambda: b"x = " + b"(" * DEEP + b"1" + b")" * DEEP,
        "deep-blocks.py": lambda: b"".join(b" " * n + b"def f():\n" for n in range(2000)),
        "deep.ts": lambda: b"class A {" * DEEP,
        "deep.go": lambda: b"func f() {" * DEEP + b"}" * DEEP,
        "deep.rb": lambda: b"def f\n" * DEEP + b"end\n" * DEEP,
        "deep.sql": lambda: b"CREATE TABLE x (" + b"(" * DEEP,
        "quotes.sql": lambda: b"$a$ $b$ '" * DEEP,
        "comments.sql": lambda: b"/*" * DEEP + b"-- \n" * DEEP,
        "deep.rst": lambda: b"".join(b"Title\n%c%c%c%c%c\n\n" % ((n,) * 5) for n in b"=-~^" * 500),
        "stars.rst": lambda: b"*" * 250 + b"`" * 250 + b"\n" + b"=" * 500 + b"\n" + b"`a <" * 9000,
        "roles.rst": lambda: b":a" * 140 + b"\n" + b"=" * 300 + b"\n\ntext\n",
        "fields.rst": lambda: b":a" + b" b" * 30 + b"\n" + b":" * 50_000,
        "deep.docx": lambda: docx(body="<w:p>" * DEEP + "</w:p>" * DEEP),
        "deep-table.docx": lambda: docx(
            "x", body="<w:tbl><w:tr><w:tc>" * 80 + "<w:p/>" + "</w:tc></w:tr></w:tbl>" * 80
        ),
        "deep.odt": lambda: odf("text", "<text:list><text:list-item>" * 120
                                + "</text:list-item></text:list>" * 120),
        "deep.pdf": lambda: pdf("x").replace(b"/Type /Catalog", b"/A " + b"[" * DEEP + b"/Type /Catalog"),
        "loop.pdf": lambda: pdf("x").replace(b"[4 0 R]", b"[2 0 R]"),
        "loop-outline.pdf": lambda: pdf("x", outline=[("a", 0)]).replace(b"/Count 1", b"/Next 2 0 R"),
    }  # fmt: skip


def _long(long: int) -> dict[str, Callable[[], bytes]]:
    return {
        "line.txt": lambda: b"x" * long,
        "spaces.txt": lambda: b"a" + b" " * long + b"b",
        "breaks.txt": lambda: b"a" + b"\n" * long + b"b",
        "line.md": lambda: b"*" * (long // 10),
        "line.rst": lambda: b"=" * long,
        "line.csv": lambda: b"," * long,
        "quote.csv": lambda: b'a,b\n"' + b"x" * long,
        "columns.csv": lambda: b",".join(b"c%d" % n for n in range(long // 250)) + b"\n" + b"1," * (long // 250),
        "line.json": lambda: b'"' + b"\\u0000" * (long // 6) + b'"',
        "line.jsonl": lambda: b"1 " * (long // 10),
        "line.py": lambda: b"'" * (long // 5),
        "line.ts": lambda: b"`${" * (long // 30),
        "line.sql": lambda: b"'" * (long // 5),
        "line.html": lambda: b"<html><p>" + b"&amp;" * (long // 5),
        "attributes.html": lambda: b"<html><p " + b" ".join(b"a%d=1" % n for n in range(long // 100)) + b">x",
        "combining.txt": lambda: ("e" + "\u0301" * (long // 10)).encode(),
        "joined.txt": lambda: ("👨\u200d" * (long // 25)).encode(),
        "flags.txt": lambda: ("🇩" * (long // 25 | 1)).encode(),
        "thai.txt": lambda: ("ภ" * (long // 25)).encode(),
        "digits.json": lambda: b"[" + b"9" * 50_000 + b", 1e400, -1E-400]",
        "digits_chunk_1.json": lambda: b'{"token_count": ' + b"9" * 50_000 + b"}",
        "big_chunk_1.json": lambda: _chunk(token_count=2**31, metadata={"page": 2**40}),
        "bigger_chunk_1.json": lambda: _chunk(token_count=10**4000, metadata={"page": 10**4000}),
        "name_chunk_1.json": lambda: _chunk(chunk_id="a" * 5000),
        "prefix_chunk_1.json": lambda: _chunk(contextual_prefix="a b " * (long // 10)),
        "path_chunk_1.json": lambda: _chunk(metadata={"subsection_title": ["a" * 900_000] * 3}),
        "zero_chunk_1.json": lambda: _chunk(chunk_text="a\0b\ud800 " * 9, extra={"a\0": "\udfff"}),
        "nan_chunk_1.json": lambda: b'{"token_count": NaN, "chunk_text": 1e999}',
        "digits.xlsx": lambda: xlsx({"S": [[10**300, -0.0], ["<><v>1e999</v>", "<><v>nan</v>"]]}),
        "far.xlsx": lambda: changed(xlsx({"S": [["a"]]}), {"xl/worksheets/sheet1.xml": sheet_xml(
            [["a", "b"]]).replace('"B1"', '"XFD1048576"').replace('r="1"', 'r="999999999"')}),
        "merged.xlsx": lambda: xlsx({"S": [["a", "b"], ["c", 1]]}, merged=["A1:XFD1048576"] * 500),
        "formats.xlsx": lambda: xlsx(
            {"S": [["a", "b"], *[[(1.5, n), "x"] for n in range(4)]]},
            formats=["0." + "0" * 200, '"' * 199, "[h" * 90, "#," * 120],
        ),
        "repeated.ods": lambda: odf("spreadsheet", (
            '<table:table table:name="T"><table:table-row table:number-rows-repeated="999999999">'
            '<table:table-cell table:number-columns-repeated="999999999"><text:p>x</text:p>'
            "</table:table-cell></table:table-row></table:table>")),
        "spaces.odt": lambda: odf("text", '<text:p>a<text:s text:c="999999999"/>b</text:p>' * 9),
        "colspan.html": lambda: b"<html><table>" + b"<tr><td colspan=999999999 rowspan=999999999>x" * 99,
        "start.html": lambda: b"<html><ol start=-99999999999999999999><li>x</ol>",
        "pages.pdf": lambda: pdf("x").replace(b"/Count 1", b"/Count 999999999"),
        "length.pdf": lambda: pdf("x").replace(b"/Length ", b"/Length 9999999999"),
    }  # fmt: skip


def _packed(long: int) -> dict[str, Callable[[], bytes]]:
    return {
        "nested.zip": lambda: nested_zip(50),
        "bomb.docx": lambda: docx("x" * 6 * long),
        "bomb.xlsx": lambda: xlsx({"S": [["y" * 6 * long]]}),
        "bomb.epub": lambda: epub("<p>" + "z" * 6 * long),
        "liar.docx": lambda: lying_about_size(docx("a" * 9000), "word/document.xml", size=9),
        "parts.docx": lambda: zipped({f"word/{number}.xml": "" for number in range(20_001)}),
        "empty.docx": lambda: b"PK\x05\x06" + b"\0" * 18,
        "climbing.epub": lambda: changed(epub("<p>x"), {"META-INF/container.xml": (
            "<container><rootfiles><rootfile full-path='../../../../etc/passwd'/></rootfiles></container>")}),
    }  # fmt: skip


def _defining() -> dict[str, Callable[[], bytes]]:
    return {
        "laughs.html": lambda: f"{_DTD}<html><p>&l9;</html>".encode(),
        "laughs.docx": lambda: changed(docx("x"), {"word/document.xml": f"{_DTD}<w>&l9;</w>"}),
        "laughs.pptx": lambda: changed(pptx(["x"]), {"ppt/slides/slide1.xml": f"{_DTD}<w>&l9;</w>"}),
        "laughs.odt": lambda: changed(odf("text", ""), {"content.xml": f"{_DTD}<w>&l9;</w>"}),
        "laughs.epub": lambda: changed(epub("x"), {"OEBPS/c 1.xhtml": f"{_DTD}<html><p>&l9;</html>"}),
        "entity.html": lambda: f"{_XXE}<html><p>&e;</html>".encode(),
        "entity.docx": lambda: changed(docx("x"), {"word/document.xml": f"{_XXE}<w>&e;</w>"}),
        "entity.epub": lambda: changed(epub("x"), {"OEBPS/c 1.xhtml": f"{_XXE}<html><p>&e;</html>"}),
        "wide-entity.docx": lambda: changed(
            docx("x"), {"word/document.xml": f"<?xml version='1.0' encoding='utf-16'?>{_XXE}<w>&e;</w>"
                        .encode("utf-16")}),
    }  # fmt: skip


def _letters(long: int) -> dict[str, Callable[[], bytes]]:
    return {
        "zeros.txt": lambda: b"A text\0 with zeros.\0" * 3,
        "surrogates.txt": lambda: b"A lone \xed\xa0\x80 surrogate.",
        "surrogates.json": lambda: b'{"title": "\\ud800", "text": "\\udfff \\u0000 words"}',
        "marks.txt": lambda: b"\xef\xbb\xbf" * 3 + b"\xff\xfe" + b"Words.",
        "torn-wide.txt": lambda: "Some words".encode("utf-16")[:-1],
        "lone-wide.txt": lambda: b"\xff\xfe" + b"a\0" * 9 + b"\0\xd8" + b"b\0",
        "bidi.md": lambda: "# \u202etxet\u202c\n\n\u2066Words\u2069 \u200f\n".encode(),
        "controls.csv": lambda: b"a\x1cb\x85,c\x0b\n1\x0c,2\n",
        "undefined.html": lambda: _meta("undefined"),
        "idna.html": lambda: _meta("idna"),
        "punycode.html": lambda: _meta("punycode"),
        "hex.html": lambda: _meta("hex"),
        "escape.html": lambda: _meta("unicode_escape") + b"\\ud800\\x00",
        "seven.html": lambda: _meta("utf-7") + b"+2AA-",
        "zero-label.html": lambda: _meta("a\0b"),
        "name\0.md": lambda: b"# Words\n\nA name with a zero.",
        "name\udce9\u202e.py": lambda: b"x = 1",
        "a" * 3000 + ".txt": lambda: b"A name without end.",
        "feed.json": lambda: json.dumps({"a" * 100_000: {"b" * 100_000: [{"c" * 99_999: 1}] * 5}}).encode(),
        "wide.jsonl": lambda: b"\n".join(b'{"a%d": {"b": [1, "x"]}}' % n for n in range(long // 250)),
    }  # fmt: skip
