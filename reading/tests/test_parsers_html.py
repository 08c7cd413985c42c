"""HTML to text that reads well as Markdown: structure kept, boilerplate and markup gone."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import Heading, ParsedDocument, ParseError, parse
from reading.parsers.text_formats import markdown_headings


def page(body: str, head: str = "", *, name: str = "the_page.html") -> ParsedDocument:
    source = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return parse(source.encode(), name=name)


def text(body: str) -> str:
    return page(body).text.rstrip("\n")


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>One\n  two</p><p>three</p>", "One two\n\nthree"),
        ("<p>a <b>b</b><i>c</i> <a href='/x'>d</a>.", "a bc d."),
        ("H<sub>2</sub>O &amp; caf&eacute; &#x1F600;&nbsp;x", "H2O & café 😀 x"),
        ("line one<br>line two<br/>", "line one\nline two"),
        ("soft&shy;ly", "softly"),
        ("<h2>Two <em>b</em></h2>x<h6>Six</h6>", "## Two b\n\nx\n\n###### Six"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<ol start=3><li>a</li><li>b</li></ol>c", "3. a\n4. b\n\nc"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ul><li><p>a<p>b<li>c</ul>", "- a\n\n  b\n- c"),
        ("<p>x<ul><li>a</ul>", "x\n\n- a"),
        ("<ul><li></li><li> </li></ul>x", "x"),
        ("<blockquote>q<p>r</blockquote>", "> q\n\n> r"),
        ("<code>x = 1</code> or <kbd>Esc</kbd>", "`x = 1` or `Esc`"),
        ("<pre>a\n  b\n</pre>", "```\na\n  b\n```"),
        ("<pre><code class='language-py'>x</code></pre>", "```py\nx\n```"),
        ("<pre>```\nx</pre>", "````\n```\nx\n````"),
        ("<img src=x alt='A cat'> sat", "A cat sat"),
        ("<dl><dt>t<dd>d</dl>", "t\n\nd"),
        ("<p># no heading<p>---<p>```", "\\# no heading\n\n\\---\n\n\\```"),
        ("<table><tr><th>a<th>b<tr><td>1<td>|</table>", "| a | b |\n| --- | --- |\n| 1 | \\| |"),
        ("<table><tr><td>a<td>b<tr><td>1</table>", "| a | b |\n| --- | --- |\n| 1 |  |"),
        (
            "<table><thead><tr><th rowspan=2>Region<th colspan=2>2026<tr><th>Plan<th>Actual</thead>"
            "<tr><td rowspan=2>North<td>1<td>2<tr><td colspan=2>both</table>",
            "| Region | 2026 Plan | 2026 Actual |\n| --- | --- | --- |\n| North | 1 | 2 |\n"
            "| North | both |  |",
        ),
        ("<table><tr><td>only<tr><td>column</table>", "only\n\ncolumn"),
        ("<table><tr><td><h1>T</h1><td>menu</table>", "# T\n\nmenu"),
        (
            "<table><caption>C</caption><tr><td>a<br>x<td>b<tr><td>1<td>2</table>after",
            "C\n\n| a x | b |\n| --- | --- |\n| 1 | 2 |\n\nafter",
        ),
    ],
)  # fmt: skip
def test_structure_becomes_markdown(html: str, markdown: str) -> None:
    assert text(html) == markdown


@pytest.mark.parametrize(
    "boilerplate",
    [
        "<script>alert(1)</script>",
        "<style>p {}</style>",
        "<nav>Home</nav>",
        "<header>Banner</header>",
        "<footer>Imprint</footer>",
        "<aside>More</aside>",
        "<div role=navigation>Home</div>",
        "<p hidden>no</p>",
        "<p style='Display: NONE'>no</p>",
        "<p aria-hidden=true>no</p>",
        "<svg><text>no</text></svg>",
        "<button>Click</button>",
        "<!-- comment -->",
        "<template><p>no</template>",
    ],
)
def test_what_is_not_the_document_is_dropped_and_what_follows_it_stays(boilerplate: str) -> None:
    assert text(f"<p>Before the thing {boilerplate}") == "Before the thing"
    assert text(f"{boilerplate}after it<p>comes more") == "after it\n\ncomes more"


def test_main_content_is_preferred() -> None:
    assert text("<div>Menu one two</div><main><p>The story itself</main><div>x</div>") == (
        "The story itself"
    )


def test_a_hollow_main_does_not_hide_the_page() -> None:
    assert "The whole story" in text("<main></main><div>The whole story is told out here</div>")


def test_an_article_keeps_its_own_header() -> None:
    body = "<header>Site</header><article><header><h1>T</h1></header><p>Text</article>"
    assert text(body) == "# T\n\nText"


def test_a_page_of_boilerplate_alone_is_kept() -> None:
    assert text("<nav>Only this</nav><footer>and that</footer>") == "Only this\n\nand that"


@pytest.mark.parametrize("attribute", ["style='visibility: hidden'", "hidden"])
def test_a_page_that_is_hidden_until_a_script_runs_is_kept(attribute: str) -> None:
    assert parse(f"<html><body {attribute}>Text".encode(), name="x.html").text == "Text\n"
    assert text(f"<div {attribute}>Text</div>") == "Text"


def test_headings_carry_offsets_into_the_text() -> None:
    document = page("<p>Intro</p><h1>One</h1><ul><li><h2>Two</h2>x</ul>")
    assert document.headings == (
        Heading(document.text.index("# One"), 1, "One"),
        Heading(document.text.index("- ## Two"), 2, "Two"),
    )


def test_title_language_and_metadata_are_read() -> None:
    source = (
        '<html lang="en-GB"><title> The\n title </title>'
        '<meta name="Description" content="D &amp; D"><meta name=author content=Ann>'
        '<meta property="article:published_time" content="2024-01-02">'
        "<body><h1>Other</h1>"
    )
    document = parse(source.encode(), name="x.html")
    assert document.title == "The title"
    assert document.language == "en"
    assert document.metadata == {"description": "D & D", "author": "Ann", "date": "2024-01-02"}
    assert (document.media_type, document.rendering) == ("text/html", "markdown")


def test_the_title_falls_back_to_the_heading_then_to_the_file() -> None:
    assert page("<h1>Head <i>line</i></h1>").title == "Head line"
    assert page("<p>x").title == "The page"


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [("windows-1251", "cp1251"), ("shift_jis", "shift_jis"), ("ISO-8859-1", "cp1252")],
)
def test_the_declared_encoding_is_used(charset: str, encoding: str) -> None:
    words = {"cp1251": "Привет", "shift_jis": "日本語", "cp1252": "“quoted” €"}[encoding]
    source = f'<html><meta http-equiv="Content-Type" content="text/html; charset={charset}">{words}'
    assert parse(source.encode(encoding), name="x.html").text.strip() == words


@pytest.mark.parametrize("label", ["utf-8", "no-such-thing", "rot13", "utf-16"])
def test_a_wrong_declaration_does_not_hurt(label: str) -> None:
    source = f'<html><meta charset="{label}"><p>Grüße an alle'
    assert parse(source.encode(), name="x.html").text.strip() == "Grüße an alle"


def test_broken_markup_is_read_as_browsers_do() -> None:
    assert text("<p>a<b>b<i>c</b>d</i></div></p>e<td>f<li>g</ul>&nosuch; <3") == (
        "abcd\n\ne\n\nf\n\n- g&nosuch; <3"
    )


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("<html><body><script>x</script></body></html>", "no_text"),
        ("<html><!-- nothing --></html>", "no_text"),
        ("<html><body>" + "<div>" * 5000 + "deep", "malformed"),
    ],
)
def test_a_page_without_readable_text_is_refused(source: str, code: str) -> None:
    with pytest.raises(ParseError, match="Save") as caught:
        parse(source.encode(), name="x.html")
    assert caught.value.code == code


_TAGS = re.findall(
    r"</?\w+>",
    "<p><div><b><h1><h2><ul><ol><li><table><tr><td><th><pre><code><blockquote><br><main><nav>"
    "<header><a></p></div></b></h1></h2></ul></ol></li></table></tr></td></th></pre></code>"
    "</blockquote></main></nav></header></a>",
)
_BITS = st.one_of(
    st.sampled_from(_TAGS),
    st.sampled_from(["word ", "# ", "- ", "```", "|", "1. ", "\n", "===", "&lt;", "<!--", "é"]),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(_BITS, max_size=40).map("".join))
def test_headings_of_any_soup_are_those_of_the_rendered_text(soup: str) -> None:
    try:
        document = page(f"start {soup}")
    except ParseError:
        return
    shown = {heading.offset for heading in markdown_headings(document.text)}
    told = {heading.offset for heading in document.headings}
    # A heading in a list or a quotation is told, though Markdown has it inside a block.
    inside = {offset for offset in told if document.text[offset] != "#"}
    assert shown == told - inside
    assert all(offset == 0 or document.text[offset - 1] == "\n" for offset in told)
