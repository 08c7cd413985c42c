"""What rules find beside names: code, links, tables and dates."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.extraction import code, links
from graph.extraction import names as extraction_names
from graph.extraction.links import MAX_ADDRESS_CHARACTERS, link_targets, path_form, web_form
from graph.extraction.mentions import Mention, MentionCounter, Source, SourcePassage


def source(text: str = "", *, key: str = "docs/guide/intro.md", **fields: Any) -> Source:
    headings = fields.pop("headings", ())
    return Source(key, fields.pop("title", "Intro"), [SourcePassage(text, headings)], **fields)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("born on 12 March 1943 in", "1943 03 12"),
        ("March 12th, 1943", "1943 03 12"),
        ("am 12. März 1943", "1943 03 12"),
        ("le 1er janvier 2001", "2001 01 01"),
        ("el 3 de mayo de 1999", "1999 05 03"),
        ("on 2020-02-29.", "2020 02 29"),
        ("12.03.1943", "1943 03 12"),
        ("in Sept. 2001", "2001 09"),
        ("in 1492", "1492"),
        ("Kant (1724–1804)", "1724 1804"),
        ("between 1914 and 1918", "1914 1918"),
        ("seit 1990", "1990"),
    ],
)
def test_dates_have_one_form_in_every_language(text: str, form: str) -> None:
    found = list(extraction_names.dates(text))
    assert " ".join(spot.form for spot in found) == form
    assert all(text[spot.start : spot.end] == spot.name for spot in found)


@pytest.mark.parametrize(
    "text",
    ["2020-02-30", "1200 people", "of 2000 people", "$1999", "1.1999", "in 19991", "in 2150",
     "32 March", "may 5", "31 April 2001"],
)  # fmt: skip
def test_other_numbers_are_no_dates(text: str) -> None:
    assert list(extraction_names.dates(text)) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Call has_chat() first.", "has_chat"),
        ("Set MAX_UPLOAD_BYTES in src/conf/settings.py.",
         "MAX_UPLOAD_BYTES src/conf/settings.py settings.py"),
        ("`timeout` and `Klass.method()`", "timeout Klass.method"),
        ("from inference.handler import x", "inference.handler"),
        ("std::vector, camelCase, PascalCase and HTTPServer",
         "std.vector camelCase PascalCase HTTPServer"),
        ("CVE-2024-3094 breaks RFC2119 (RFC 2119), E1234", "CVE-2024-3094 RFC 2119 E1234"),
        ("with --no-verify", "--no-verify"),
        ("self.client.get_page(x)", "client.get_page get_page"),
    ],
)  # fmt: skip
def test_identifiers_are_found_in_prose(text: str, names: str) -> None:
    found = [mention.name for mention in code.code_mentions(source(text))]
    assert " ".join(name for name in found if name != "intro.md") == names


@pytest.mark.parametrize(
    "text",
    ["Plain words of a sentence.", "the end.The next", "the U.S. army, e.g. this", "McDonald",
     "www.example.com/a_b and https://example.com/some_path", "ada@example_mail.com",
     "`self` and `i`", "v1.2.3", "deadbeef1234_a5"],
)  # fmt: skip
def test_what_only_looks_like_code_is_none(text: str) -> None:
    assert [spot.name for spot in code.identifiers(text)] == []


def test_definitions_in_source_code_stand_in_headings() -> None:
    text = "class Shop(Base):\n    def order_all(self):\n        return self.client.get_page(1)\n"
    given_source = source(
        text, key="src/shop.py", media_type="text/x-python", headings=("Shop", "order_all")
    )
    found = {mention.name: mention for mention in code.code_mentions(given_source)}
    assert found["shop.py"].kind == "self"
    assert {found[name].kind for name in ("Shop", "order_all", "Shop.order_all")} == {"heading"}
    assert (found["get_page"].kind, found["Shop"].count) == ("text", 2)
    assert text[found["order_all"].start : found["order_all"].end] == "order_all"


LINKS = {
    "[setup](../setup.md#x 'T')": "ref:/docs/setup",
    "[a](<with space.md>)": "ref:/docs/guide/with space",
    "[a](a_(b).html)": "ref:/docs/guide/a_(b)",
    "[folder](../api/)": "ref:/docs/api",
    "[root](/top/README.md)": "ref:/top",
    "[[Some Page|label]]": "some page",
    "<https://www.Example.com/Foo/?utm_source=1&a=2#f>": "ref:example.com/Foo?a=2",
    "at https://example.org/a/b.html.": "ref:example.org/a/b",
    "(see http://en.example/wiki/A_(b))": "ref:en.example/wiki/A_(b)",
    "\n[id]: http://ref.example/x": "ref:ref.example/x",
    '<a href="other.html">x</a>': "ref:/docs/guide/other",
    ":doc:`text <other>`": "ref:/docs/guide/other",
    ":ref:`My  Label`": "ref:label:my label",
    "`text <http://in.example/a>`_": "ref:in.example/a",
    ".. _named: http://named.example/": "ref:named.example",
    "by ada@example.com": "email:ada@example.com",
}


@pytest.mark.parametrize("text", LINKS)
def test_links_lead_to_one_form(text: str) -> None:
    found = [mention for mention in links.link_mentions(source(text)) if mention.kind != "self"]
    assert [mention.form for mention in found] == [LINKS[text]]
    assert text[found[0].start : found[0].end] == found[0].name


@pytest.mark.parametrize(
    "text",
    ["[here](#below)", "![pic](img.png)", "[m](mailto:)", "[s](javascript:alert(1))", "[t]()",
     "[itself](intro.md)", "[itself](./intro.html#top)", "http://", "[x](http://[)"],
)  # fmt: skip
def test_what_leads_nowhere_is_no_link(text: str) -> None:
    assert [
        mention.form for mention in links.link_mentions(source(text)) if mention.kind == "link"
    ] == []


def test_a_document_is_found_at_its_key_its_address_and_the_name_of_its_file() -> None:
    note = source(
        key="notes/Adas plan.md", url="https://wiki.example/plan/?utm_source=x", title="Plan"
    )
    assert {(mention.form, mention.kind) for mention in links.link_mentions(note)} == {
        ("ref:/notes/Adas plan", "self"),
        ("ref:wiki.example/plan", "self"),
        ("adas plan", "self"),
    }


def test_relative_links_are_seen_from_the_key_and_from_the_address() -> None:
    page = source(key="docs/a.md", url="https://site.example/x/a.html")
    assert list(link_targets("b.md", source=page)) == ["ref:/docs/b", "ref:site.example/x/b"]


def test_a_long_list_of_links_is_cut() -> None:
    text = "\n".join(f"[l](page{number}.md)" for number in range(5_000))
    assert len(list(links.link_mentions(source(text)))) < 100


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_address_is_too_strange(link: str, key: str) -> None:
    document = source(key=key, url=link)
    forms = [web_form(link), path_form(link), *link_targets(link, source=document)]
    forms += [mention.form for mention in links.link_mentions(document)]
    assert all(len(form) <= MAX_ADDRESS_CHARACTERS and "\0" not in form for form in forms)


@given(st.text(alphabet="[]()<>`:/.#_ a1hrefdoc@\n\"'|-", max_size=400))
def test_mentions_stand_where_they_say(text: str) -> None:
    for part in (links.link_mentions, code.code_mentions, extraction_names.date_mentions):
        for mention in part(source(text)):
            assert 0 <= mention.start <= mention.end <= len(text)
            assert mention.form
            assert mention.count >= 1


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, "](" * 20_000, "`<" * 20_000, "a." * 20_000, "A-1" * 20_000, "1999 " * 20_000,
     "https://(" * 5_000, "_" * 50_000, "aB" * 30_000, ":ref:`" * 10_000, "\n.. _" * 10_000],
    ids=range(11),
)  # fmt: skip
def test_hostile_texts_are_read_like_others(text: str) -> None:
    for part in (links.link_mentions, code.code_mentions, extraction_names.date_mentions):
        assert len(list(part(source(text)))) <= 64


def test_a_table_is_known_in_its_schema_and_database_only() -> None:
    table = Source(
        "public.Orders",
        "",
        [SourcePassage("Table Orders"), SourcePassage("- user refers to public.users (id).")],
        metadata={
            "kind": "table",
            "database": "shop",
            "schema": "public",
            "table": "Orders",
            "foreign_keys": [{"references": "public.users"}, {"references": None}, 7],
        },
    )
    own, users = links.table_mentions(table)
    assert (own.form, own.kind, own.passage) == ("table:shop/public.orders", "self", 0)
    assert (users.form, users.kind, users.passage) == ("table:shop/public.users", "link", 1)
    assert table.passages[1].text[users.start : users.end] == "public.users"


@pytest.mark.parametrize(
    "metadata",
    [{}, {"kind": "table"}, {"kind": "table", "table": ["a"]}, {"table": "users"},
     {"kind": "note", "table": "users", "foreign_keys": "x"}],
)  # fmt: skip
def test_other_documents_are_no_tables(metadata: dict[str, Any]) -> None:
    assert list(links.table_mentions(source("Text", metadata=metadata))) == []


def test_what_stands_twice_in_a_passage_is_one_mention() -> None:
    tally = MentionCounter(most=2)
    tally.add(Mention(0, "a", "A", "name", "heading"))
    tally.add(Mention(0, "a", "a", "name", "text", 2, 5, 6))
    for form in ("b", "c"):
        tally.add(Mention(0, form, form, "name"))
    tally.add(Mention(1, "c", "c", "name"))
    first, *others = tally.mentions()
    assert (first.kind, first.count, first.start, first.end) == ("heading", 3, 5, 6)
    assert [(mention.passage, mention.form) for mention in others] == [(0, "b"), (1, "c")]
