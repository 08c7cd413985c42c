"""HTML to text that reads well as Markdown: structure kept, boilerplate and markup gone."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParsedDocument, ParseError, parse
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
