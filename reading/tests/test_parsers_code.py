"""Source code stays as it is; classes, functions and tables are the headings of its chunks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.chunkers.boundaries import DocumentStructure
from reading.code_languages import GRAMMARS, LANGUAGES, LINE_PATTERNS, language_of_file_name
from reading.parsers import FORMATS, ParsedDocument, ParseError, parse
from reading.parsers.code import CodeBlock, code_blocks, parse_code
from reading.parsers.sql_statements import split_statements

PYTHON = '''\
"""About shops. — ü"""
import os

# What people buy.
@dataclass
class Order(Base):
    """One order."""

    total = 0

    # Cents.
    @property
    def price(self):
        def inner(): ...
        return inner

    currency = "EUR"

    class Line:
        def text(self): ...


async def load(): return 2

ORDERS = load()
'''


def read(text: str, name: str) -> ParsedDocument:
    return parse(text.encode(), name=name)


def names(text: str, language: str) -> list[str]:
    """Blocks as `name`, with a dot before it for each level below the first."""
    return ["." * (block.level - 1) + block.name for block in code_blocks(text, language)]


def path_at(document: ParsedDocument, words: str) -> tuple[str, ...]:
    return DocumentStructure(document).heading_path(document.text.index(words))


def test_the_text_is_kept_to_the_letter() -> None:
    document = read(PYTHON, "src/shop/orders.py")
    assert document.text == PYTHON
    assert (document.media_type, document.rendering) == ("text/x-python", "plain")
    assert document.title == "orders.py"
    assert document.metadata == {"language_name": "Python"}


def test_every_place_stands_under_the_class_and_function_it_is_in() -> None:
    document = read(PYTHON, "orders.py")
    assert path_at(document, "import os") == ()
    assert path_at(document, "# What people buy") == ("Order",)
    assert path_at(document, "total = 0") == ("Order",)
    assert path_at(document, "# Cents") == ("Order", "price")
    assert path_at(document, "return inner") == ("Order", "price")
    assert path_at(document, "currency") == ("Order",)
    assert path_at(document, "def text") == ("Order", "Line", "text")
    assert path_at(document, "async def load") == ("load",)
    assert path_at(document, "ORDERS = ") == ("orders.py",)


def test_a_block_has_its_comments_and_decorators() -> None:
    order, price, line, text, load = code_blocks(PYTHON, "python")
    assert [block.kind for block in (order, price, line, text, load)] == [
        "class", "function", "class", "function", "function",
    ]  # fmt: skip
    assert PYTHON[order.start :].startswith("# What people buy.\n@dataclass\nclass Order")
    assert PYTHON[: order.end].endswith("def text(self): ...")
    assert PYTHON[price.start : price.end].startswith("    # Cents.\n    @property\n")
    assert PYTHON[price.start : price.end].endswith("return inner")
    assert PYTHON[load.start : load.end] == "async def load(): return 2"


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        (
            "javascript",
            "exports.a = function () {};\nconst b = () => { function no() {} };\n"
            "module.exports = { c() {}, d: () => 1 };\nclass E { static f() {} g = () => 1; }\n"
            "export default async function h() {}\n",
            ["exports.a", "b", "c", "d", "E", ".f", ".g", "h"],
        ),
        (
            "typescript",
            "export abstract class A<T> { constructor(a: string) {} get f(): T {} }\n"
            "export interface I { a: string }\ntype T = { a: I }\nenum E { A }\n"
            "namespace N { export function q() {} }\nexport const h = async (x: number) => {};\n",
            ["A", ".constructor", ".f", "I", "T", "E", "N", ".q", "h"],
        ),
        ("tsx", "export const App = () => <p>{x}</p>;\nfunction F() {}", ["App", "F"]),
        (
            "java",
            "package p;\n/** Doc */\n@Ann class A { A() {} @Override void f() {}\n"
            "enum E { X; void q() {} } interface I { int h(); } record R(int a) {} }",
            ["A", ".A", ".f", ".E", "..q", ".I", "..h", ".R"],
        ),
        (
            "rust",
            "mod m { pub fn a() {} }\n#[derive(Debug)]\nstruct S<T> { x: T }\n"
            "impl<T> Shape for S<T> { fn area(&self) {} }\ntrait T { fn g() {} }\nenum E { A }",
            ["m", ".a", "S", "impl<T> Shape for S<T>", ".area", "T", ".g", "E"],
        ),
        (
            "go",
            "package p\n// Doc\ntype S struct { a int }\nfunc (s *S) Start() error { return nil }\n"
            "func (g Gen[T]) Stop() {}\nfunc Top() {}",
            ["S", "S.Start", "Gen.Stop", "Top"],
        ),
        (
            "c",
            "typedef struct { int a; } T;\nstruct S { int x; };\nstatic int *f(int a) { return 0; }"
            "\nint (*g(void))(int) { return 0; }\n#ifdef X\nvoid h() {}\n#endif\n",
            ["T", "S", "f", "g", "h"],
        ),
        (
            "cpp",
            "namespace n { class C : D { ~C() {} int f() const { return 1; } };\n"
            "int C::g() { return 1; }\ntemplate <typename T> T& mx(T a) { return a; } }",
            ["n", ".C", "..~C", "..f", ".C::g", ".mx"],
        ),
        (
            "csharp",
            "namespace A.B { class C { public C() {} public int F() => 1; } interface I {} }",
            ["A.B", ".C", "..C", "..F", ".I"],
        ),
        (
            "ruby",
            "module A::B\n class C < D\n  def f(a); end\n  def self.g; end\n end\nend\n"
            "def top; end",
            ["A::B", ".C", "..f", "..g", "top"],
        ),
        (
            "php",
            "<?php\nnamespace A\\B;\nclass C { public function f($a) {} }\ntrait T {}\n"
            "function top() {}",
            ["C", ".f", "T", "top"],
        ),
        ("bash", "f() { echo; }\nfunction g { echo; }", ["f", "g"]),
        (
            "kotlin",
            "class A {\n  fun f(): Int { return 1 }\n  companion object {\n    fun g() = 2\n  }\n"
            "}\nfun String.top() = 1\n",
            ["A", ".f", ".companion object", "..g", "top"],
        ),
        (
            "swift",
            "class A { func f() -> Int { return 1 }\n init(x: Int) {} }\n"
            "extension A { func g() {} }",
            ["A", ".f", ".init", "A", ".g"],
        ),
        ("scala", "class A { def f(a: Int) = 1 }\nobject O { def g = 2 }", ["A", ".f", "O", ".g"]),
        (
            "lua",
            "function M.b(x) end\nfunction M:c() end\nM.d = function() end",
            ["M.b", "M:c", "M.d"],
        ),
        ("r", "mean2 <- function(x) {\n  x\n}\nother = function() 1\n", ["mean2", "other"]),
        ("toml", "a = 1\n[x.y]\nb = 2\n[[z]]\n", ["x.y", "z"]),
        ("ini", "[one]\na=1\n\n[two]\n", ["one", "two"]),
        ("yaml", "services:\n  a: b\nvolumes: {}\n", ["services", "volumes"]),
        ("makefile", "X := 1\nall: a\n\techo\n%.o: %.c\n\tcc\n", ["all", "%.o"]),
        ("dockerfile", "FROM debian AS base\nRUN x\nfrom base\n", ["debian AS base", "base"]),
        ("css", "a { color: red }", []),
        ("unheard-of", "anything", []),
    ],
)  # fmt: skip
def test_classes_and_functions_of_many_languages(
    language: str, text: str, found: list[str]
) -> None:
    assert names(text, language) == found


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.py", "text/x-python"),
        ("a.JSX", "text/x-javascript"),
        ("app/Dockerfile", "text/x-dockerfile"),
        ("C:\\src\\Makefile", "text/x-makefile"),
        ("settings.toml", "text/x-toml"),
        ("values.yml", "text/x-yaml"),
        ("app.ini", "text/x-ini"),
        ("app.log", "text/plain"),
        ("letter.tex", "text/plain"),
    ],
)
def test_files_are_known_by_their_names(name: str, media_type: str) -> None:
    assert read("x = 1", name).media_type == media_type


def test_every_language_has_a_parser_and_no_grammar_is_left_over() -> None:
    media_types = {media_type for entry in FORMATS for media_type in entry.media_types}
    assert {language.media_type for language in LANGUAGES} <= media_types
    assert GRAMMARS.keys() | LINE_PATTERNS.keys() <= {language.name for language in LANGUAGES}
    assert language_of_file_name("Dockerfile") in LANGUAGES


def test_code_with_errors_gives_what_can_be_made_out() -> None:
    assert "good" in names("def good():\n    return 1\n\nclass (:\n  ???\n", "python")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ParseError, match="no text"):
        read("\ufeff\n \n", "a.py")


SCHEMA = """\
-- People; and what they buy
CREATE TABLE IF NOT EXISTS "shop"."customers" (id int, note text DEFAULT ';');  -- who; buys
COMMENT ON TABLE "shop"."customers" IS 'It''s; people';
CREATE INDEX by_id ON shop.customers (id);

CREATE TABLE [dbo].[Orders] (
  id int CHECK (id > 0)
)
GO
CREATE VIEW revenue AS SELECT 1;
CREATE FUNCTION total() RETURNS int AS $$ BEGIN; CREATE TABLE no (a int); END $$ LANGUAGE plpgsql;
CREATE PROCEDURE pay() BEGIN SELECT 1; SELECT 2; END;
ALTER TABLE shop.customers ADD CONSTRAINT pk PRIMARY KEY (id);
"""


def test_a_script_of_tables_is_a_schema() -> None:
    document = read(SCHEMA, "db/schema.sql")
    assert document.text == SCHEMA
    assert document.metadata == {
        "language_name": "SQL",
        "tables": ["shop.customers", "dbo.Orders", "revenue"],
    }
    assert [heading.title for heading in document.headings] == [
        "shop.customers", "dbo.Orders", "revenue", "total", "pay", "shop.customers",
    ]  # fmt: skip
    assert document.headings[0].offset == 0
    assert path_at(document, "COMMENT ON") == ("shop.customers",)
    assert path_at(document, "CREATE TABLE no") == ("total",)
    assert path_at(document, "SELECT 2") == ("pay",)


def test_other_sql_is_code() -> None:
    document = read("SELECT a FROM b;\n" * 20 + "CREATE TABLE t (a int);", "report.sql")
    assert document.metadata == {"language_name": "SQL"}
    assert [heading.title for heading in document.headings] == ["t"]


def test_the_data_of_a_dump_is_no_statement() -> None:
    dump = (
        "COPY t (a) FROM stdin;\nit's; (here\nCREATE TABLE no (a int);\n\\.\nCREATE TABLE yes (a);"
    )
    assert [entry.name for entry in split_statements(dump) if entry.kind] == ["yes"]


_PIECES = st.sampled_from(
    ["class A", "def f(x):", "function f()", " {", "}", "(", ")", "\n", "\n    ", "# note\n",
     "/* x", "*/", '"', "'", "`", "ü", "👩‍👩‍👧", "end\n", ";", "@dec\n", "impl S ", "return 1",
     "CREATE TABLE t (a int)", "$$", "--", "[x]", "key: v", "template <T>", "=> ", "export "]
)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(
    text=st.lists(_PIECES, max_size=30).map("".join),
    language=st.sampled_from([language.name for language in LANGUAGES]),
)
def test_blocks_of_any_text_nest_and_lie_within_it(text: str, language: str) -> None:
    around: list[CodeBlock] = []
    previous = -1
    for block in code_blocks(text, language):
        assert previous < block.start < block.end <= len(text)
        previous = block.start
        while around and around[-1].end <= block.start:
            around.pop()
        assert block.level == len(around) + 1
        assert not around or block.end <= around[-1].end
        assert text[block.start : block.end].strip()
        around.append(block)


@settings(deadline=None, max_examples=100)
@given(
    text=st.lists(_PIECES, min_size=1, max_size=30).map("".join),
    name=st.sampled_from(["a.py", "a.ts", "a.rs", "a.cpp", "a.sql", "a.rb", "a.yaml", "Makefile"]),
)
def test_headings_of_any_code_are_in_order_and_named(text: str, name: str) -> None:
    document = read(f"x{text}", name)
    offsets = [heading.offset for heading in document.headings]
    assert offsets == sorted(offsets)
    assert all(heading.level >= 1 for heading in document.headings)


def test_a_name_of_no_language_is_refused() -> None:
    with pytest.raises(ParseError, match="not have the suffix of a programming language") as caught:
        parse_code(b"x = 1", name="a.unheard-of")
    assert caught.value.code == "unsupported"
