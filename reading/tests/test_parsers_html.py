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
