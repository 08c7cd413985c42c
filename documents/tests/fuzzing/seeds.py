"""One small file of every format and encoding that the site reads, with all that the format has."""

import json
from collections.abc import Mapping
from functools import cache

from reading.tests.factories_books import epub, odf
from reading.tests.factories_files import chunk_json, pdf
from reading.tests.factories_mail import mail, outlook
from reading.tests.factories_office import NAMES, docx, pptx, table, xlsx
from reading.tests.factories_pdf import known_tables

_CORE = {"title": "A title", "creator": "Ann", "language": "en", "created": "2024-01-02T03:04:05Z"}

_MARKDOWN = """---
title: Notes
tags: [a, b]
when: 2024-01-02
nested: {one: 1.5, two: ~}
---
# Notes *on* keys

Text with `code`, [a link](http://example.org "t") and ![none](x.png). <b>bold</b>

<!-- a comment -->

| name | about |
|------|-------|
| one  | two   |

- item
  1. inner

```python
def f(): pass
```

> quoted

Second
------
"""
_HTML = """<!doctype html><html lang="de"><head><meta charset="utf-8"><title>Seite</title>
<meta name="author" content="Ann"></head><body><nav>menu</nav><main><h1>Eins</h1><p>Ein Text &amp;
<a href="/x">mehr</a> &#x1F600;</p><ul><li>a<ul><li>b</ul></ul><ol start="3"><li>c</ol>
<table><tr><th colspan="2">n</th></tr><tr><td rowspan="2">1<td>2</table><pre><code class=
"language-py">x = 1</code></pre><script>alert(1)</script><style>p{}</style></main></body></html>"""
_RST = """======
Manual
======

:Author: Ann
:Date: 2024

.. title:: Given

Part one
--------

A `link <http://example.org>`_ and ``code``, *that* and **this**; :ref:`there`.

.. code-block:: python

   def f():
       return 1

.. note:: Be careful.

+---+---+
| a | b |
+===+===+
| 1 | 2 |
+---+---+
"""
_CSV = 'name;amount;"said, so"\n"one ""1""";1.234,50;x\ntwo;-3e5;"line\nbreak"\n;;\n'
_PYTHON = '"""A module."""\n\nimport os\n\n\nclass A:\n    """Doc."""\n\n    def f(self, x=(1, 2)):\n' \
    "        return f'{x!r:>{10}}'\n\n\ndef g():\n    '''one'''\n    return lambda: {1: [2]}\n"  # fmt: skip
_SQL = """-- people
CREATE TABLE person (id int PRIMARY KEY, name text DEFAULT 'it''s', note text);
CREATE OR REPLACE FUNCTION f() RETURNS int AS $body$ BEGIN RETURN 1; END $body$ LANGUAGE plpgsql;
INSERT INTO person VALUES (1, E'a\\'b', $$c;d$$); /* end */
"""
_MAIL = "From: Ann <a@example.org>\r\nTo: b@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n" \
    "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nHello\r\n--x--"  # fmt: skip
_YAML = "a: &a [1, 2]\nb: *a\nc: {d: |\n  text\n  }\nlist:\n  - x\n  - !!str 1\n"
_JSON = json.dumps(
    {"title": "Record", "n": 1.5e10, "a": {"b": [1, None, True, "ä\u20ac😀"]}, "text": "Words \\u"}
)


@cache
def seeds() -> Mapping[str, bytes]:
    """By name; each is read, and gives passages."""
    return _office() | {
        "notes.md": _MARKDOWN.encode(),
        "page.html": _HTML.encode(),
        "manual.rst": _RST.encode(),
        "rows.csv": _CSV.encode(),
        "talk.vtt": b"WEBVTT\n\nNOTE no\n\n00:01.000 --> 00:02.000\n<v Ann>One <b>two</b>.\n",
        "talk.srt": b"1\n00:00:01,000 --> 00:00:02,000\nBob: One.\n\n2\n00:00:09,000 --> 00:00:10,000\nTwo",
        "rules.rtf": rb"{\rtf1\ansi{\fonttbl{\f1\fcharset204 A;}}{\stylesheet{\s1 heading 1;}}\pard\s1 A\par"
        rb"\pard \u8364 ?\'e4{\f1\'cf}{\listtext 1.}\pard\ls1 b\par\trowd\cellx1\intbl c\cell\row\pard d}",
        "rows.tsv": b"a\tb\n1\t2\n3\t4\n",
        "record.json": _JSON.encode(),
        "lines.jsonl": f"{_JSON}\n{_JSON}\n".encode(),
        "a_chunk_001.json": chunk_json(),
        "bundle.chunks.jsonl": chunk_json(1) + b"\n" + chunk_json(2),
        "values.yaml": _YAML.encode(),
        "letter.eml": _MAIL.encode(),
        "module.py": _PYTHON.encode(),
        "main.go": b"package main\n\n// F tells.\nfunc (s *S) F(x int) (a, b string) {\n\treturn `q`\n}\n",
        "app.ts": b"/** Doc */\nexport class A<T> {\n  f = (x: T) => { return `a${x}` }\n}\n",
        "a.rb": b"class A\n  def f\n    if x then 1 end\n  end\nend\n",
        "schema.sql": _SQL.encode(),
        "plain.txt": "Größe, naïve – “quoted” words. 😀\n\nA second paragraph.\n".encode(),
        "bom.txt": "\ufeffWords behind a mark.\n".encode(),
        "wide.txt": "Ein Text über UTF-16.\n".encode("utf-16"),
        "wider.txt": "Ein Text über UTF-32.\n".encode("utf-32"),
        "unmarked.txt": "A text without its mark, in UTF-16.\n".encode("utf-16-be"),
        "windows.log": "Größe und Preis: 5 €\r\n".encode("cp1252"),
        "thai.txt": "ภาษาไทยไม่มีช่องว่าง 中文也没有空格。日本語もない。\n".encode(),
    }


def _office() -> dict[str, bytes]:
    footnotes = f'<w:footnotes {NAMES}><w:footnote w:id="2"><w:p><w:r><w:t>Foot</w:t></w:r></w:p>' \
        "</w:footnote></w:footnotes>"  # fmt: skip
    cells = [["name", "amount", "when"], ["one", 1.5, (45000, 0)], ["two", True, None]]
    sheet = (
        '<table:table table:name="T"><table:table-row><table:table-cell><text:p>a</text:p>'
        '</table:table-cell><table:table-cell table:number-columns-repeated="3"><text:p>b</text:p>'
        "</table:table-cell></table:table-row></table:table>"
    )
    prose = '<text:h text:outline-level="1">Title</text:h><text:p>A text.</text:p>' \
        "<text:list><text:list-item><text:p>x</text:p></text:list-item></text:list>"  # fmt: skip
    return {
        "paper.pdf": pdf(
            ["Title", "One line (of) text."],
            ["Two"],
            outline=[("Two", 1), ("In", 0)],
            metadata={"Author": "Ann", "CreationDate": "D:20240102030405Z"},
            language="en",
        ),
        "prices.pdf": known_tables()["book"][1],
        "report.docx": docx(
            "# Report", "A paragraph.", "## Part", body=table(["a", "b"], ["1", "2"]),
            parts={"footnotes": footnotes}, core=_CORE,
        ),
        "slides.pptx": pptx(["Title", "One", "\tTwo"], ["Next"], notes={1: "A note"}, core=_CORE),
        "table.xlsx": xlsx(
            {"Sheet": cells, "Other": [["x"]]}, merged=["A1:A2"], formats=["#,##0.00"], core=_CORE
        ),
        "text.odt": odf("text", prose, core={"title": "A title"}),
        "sheet.ods": odf("spreadsheet", sheet),
        "letter.eml": mail(html="<p>x", attached={"a.txt": b"A", "m.eml": mail()}).as_bytes(),
        "letter.msg": outlook({0x0037: "Kessel", 0x1000: "Text"}, {"__attach_1": {0x3701: b"x"}}),
        "book.epub": epub("<h1>One</h1><p>A text.</p>", "<h2>Two</h2><p>More.</p>", core=_CORE),
    }  # fmt: skip
