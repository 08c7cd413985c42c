"""Documents as HTML and as pages: passages and quotations are where they are, parts cover a long
text, and nothing an author wrote does anything."""

import re
from collections import Counter
from html import unescape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml_html

from documents.document_html import RenderedDocument, render_document, render_markdown
from documents.models import Document
from documents.page_marks import Mark, Word, place_quotation
from documents.reader import page_at, split_pages
from reading.parsers import parse
from reading.parsers.page_image import read_page_layer
from reading.tests.test_parsers_cases import CASES

WORDS = st.text(alphabet="ab<>&\"'#*_`|-[]()!\\ \n\t", max_size=120)
HARMLESS = {"class", "id", "tabindex", "role", "aria-label", "href", "rel", "title", "start"}
ACTING = {"script", "style", "img", "svg", "iframe", "form", "input", "math"}
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:alert(1))",
    "![x](https://elsewhere.example/pixel.png)",
    "<iframe src=//elsewhere.example></iframe>",
    "<b onmouseover=alert(1)>b</b>",
    "<style>body{display:none}</style>",
    "<form action=//elsewhere.example><input name=q></form>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "`</code></pre><script>alert(1)</script>`",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "# <img src=x onerror=alert(1)>\n\ntext",
    "<p id=passage class=passage>not the passage</p>",
    "<<script>script>alert(1)</script>",
    '<a href="x" id="q" name="q">clobber</a>',
    "| a |\n|---|\n| <td onclick=alert(1)> |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "[x]: javascript:alert(1)\n\n[x]",
    "<https://ok.example/><javascript:alert(1)>",
]


def markdown(text: str, passage: tuple[int, int] | None = None, **fields: str) -> RenderedDocument:
    return render_document(Document(rendering="markdown", **fields), text, passage=passage)


def plain(text: str, passage: tuple[int, int] | None = None) -> RenderedDocument:
    return render_document(Document(rendering="plain"), text, passage=passage)


def of(text: str, words: str) -> tuple[int, int]:
    start = text.index(words)
    return start, start + len(words)


def tree(rendered: RenderedDocument) -> lxml_html.HtmlElement:
    return lxml_html.fragment_fromstring(rendered.html, create_parent="main")


def find(rendered: RenderedDocument, path: str) -> list[lxml_html.HtmlElement]:
    return list(tree(rendered).iterfind(path))


def marked(rendered: RenderedDocument) -> list[str]:
    found = find(rendered, ".//*[@class='passage']")
    return [" ".join(element.text_content().split()) for element in found]


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


# --- nothing does anything ---------------------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("rendering", ["plain", "markdown"])
def test_what_an_author_wrote_never_acts(attack: str, rendering: str) -> None:
    document = Document(rendering=rendering, title=attack)

    rendered = render_document(document, f"before\n\n{attack}\n\nafter", passage=(0, 6))

    for element in tree(rendered).iter():
        assert element.tag not in ACTING
        assert set(element.attrib) <= HARMLESS
        assert re.match(r"https?://|mailto:|#", element.get("href", "#"))
    passages = find(rendered, ".//*[@id='passage']")
    assert [element.text_content() for element in passages] == ["before"]
    assert "after" in rendered.html


@given(WORDS)
def test_whatever_markdown_becomes_is_on_the_list(text: str) -> None:
    for element in tree(markdown(text)).iter():
        assert set(element.attrib) <= HARMLESS


def test_source_code_keeps_its_indentation_behind_blank_lines() -> None:
    html = plain("class A:\n    a = 1\n\n    \n    b = 2\n").html
    assert html == "<p>class A:\n    a = 1</p>\n<p>    b = 2\n</p>"


def test_an_image_is_its_description() -> None:
    assert ">a chart of sales<" in markdown("![a chart of *sales*](https://x.example/y.png)").html


def test_raw_html_leaves_its_words_and_the_tags_that_style_them() -> None:
    inline = markdown('H<sub>2</sub>O <span class="x">is</span>')
    block = markdown('<div align="center">\nwater\n</div>')

    assert "H<sub>2</sub>O is" in inline.html
    assert "<p>water</p>" in block.html


def test_a_link_to_a_heading_works_and_one_to_a_path_is_none() -> None:
    rendered = markdown("# Set up\n\n[here](#set-up) [there](../other.md) [out](https://x.example)")
    links = {element.text: element.get("href") for element in find(rendered, ".//a")}

    assert links == {"here": "#h-set-up", "there": None, "out": "https://x.example"}
    assert find(rendered, ".//*[@id='h-set-up']")


# --- the passage -------------------------------------------------------------------------------


@given(text=WORDS, cut=st.tuples(st.integers(0, 120), st.integers(0, 120)))
def test_plain_text_loses_nothing_and_marks_exactly_the_passage(
    text: str, cut: tuple[int, int]
) -> None:
    start, end = sorted(cut)
    rendered = plain(text, (start, end))
    inside = re.findall(
        r'<(mark|p) class="passage"[^>]*>(.*?)</\1>', rendered.html, flags=re.DOTALL
    )

    shown = unescape(re.sub(r"</?(?:p|mark)\b[^>]*>", "", rendered.html))
    assert squeezed(shown) == squeezed(text)
    assert squeezed(unescape("".join(body for _, body in inside))) == squeezed(text[start:end])
    assert rendered.html.count('id="passage"') == (1 if text[start:end].strip() else 0)


def test_a_passage_across_paragraphs_is_marked_in_each() -> None:
    text = "One is here.\n\nTwo is whole.\n\nThree is there."

    assert marked(plain(text, of(text, "here.\n\nTwo is whole.\n\nThree"))) == [
        "here.",
        "Two is whole.",
        "Three",
    ]


MARKDOWN = """# Guide

Before.

## Setting `it` up

- tight one
- tight two
  - nested

1. loose

   second paragraph

| a | b |
|:--|--:|
| 1 | 2 |

```py
code()
```

> quoted

Behind.
"""


@pytest.mark.parametrize(
    ("words", "blocks"),
    [
        ("Before.", ["Before."]),
        ("Setting `it`", ["Setting it up"]),
        ("tight two", ["tight two"]),
        ("nested", ["nested"]),
        ("second", ["second paragraph"]),
        ("| 1 | 2 |", ["1 2"]),
        ("code()", ["code()"]),
        ("quoted", ["quoted"]),
        ("Before.\n\n## Setting `it` up\n\n- tight one", ["Before.", "Setting it up", "tight one"]),
        ("2 |\n\n```py\ncode()\n```\n\n> quoted", ["1 2", "code()", "quoted"]),
    ],
)
def test_markdown_marks_every_block_that_the_passage_touches_and_no_other(
    words: str, blocks: list[str]
) -> None:
    rendered = markdown(MARKDOWN, of(MARKDOWN, words))

    assert marked(rendered) == blocks
    assert rendered.html.count('id="passage"') == 1


def test_white_space_at_the_ends_of_a_passage_marks_no_neighbour() -> None:
    text = "One.\n\nTwo.\n\nThree."

    assert marked(markdown(text, of(text, "\n\nTwo.\n\n"))) == ["Two."]


def test_a_passage_outside_the_text_marks_nothing() -> None:
    assert marked(plain("text", (10, 20))) == []
    assert marked(markdown("text", (-5, 0))) == []


# --- headings ----------------------------------------------------------------------------------


def test_the_outline_names_the_headings_and_leads_to_them() -> None:
    rendered = markdown("# One *two*\n\n## Same\n\n## Same\n\n### 數據\n\n## &&\n")

    assert [(entry.title, entry.level, entry.anchor) for entry in rendered.outline] == [
        ("One two", 1, "h-one-two"),
        ("Same", 2, "h-same"),
        ("Same", 2, "h-same-2"),
        ("數據", 3, "h-數據"),
        ("&&", 2, "h-section"),
    ]
    ids = [element.get("id") for element in tree(rendered).iter("h2", "h3", "h4")]
    assert ids == [entry.anchor for entry in rendered.outline]


def test_headings_stand_below_the_title_of_the_page() -> None:
    assert find(markdown("# One\n\n###### Six"), ".//h1") == []


def test_a_heading_that_repeats_the_title_is_left_out_unless_it_is_marked() -> None:
    assert "Guide" not in markdown("# Guide\n\ntext", title="Guide").html
    assert "Guide" in markdown("# Guide\n\ntext", title="Another").html
    assert marked(markdown("# Guide\n\ntext", (0, 7), title="Guide")) == ["Guide"]


def test_a_marked_heading_is_still_found_from_the_outline() -> None:
    rendered = markdown("## Set up\n\ntext", (0, 9))

    assert find(rendered, ".//*[@id='passage']//*[@id='h-set-up']")


def test_code_and_tables_that_scroll_can_be_reached_by_keyboard() -> None:
    rendered = markdown("```\nx\n```\n\n| a |\n|---|\n| 1 |")

    assert [element.tag for element in find(rendered, ".//*[@tabindex='0']")] == ["pre", "div"]


def test_an_empty_text_is_empty() -> None:
    assert markdown("").html == plain("").html == ""


NONE: frozenset[str] = frozenset()


def line(text: str, y: float, x: float = 0.1) -> list[Word]:
    """Words side by side, each letter a hundredth of the width."""
    words: list[Word] = []
    for word in text.split():
        words.append((word, round(x, 4), y, round(x + 0.01 * len(word), 4), round(y + 0.02, 4)))
        x += 0.01 * (len(word) + 1)
    return words


def marks_of(text: str, quotation: str, *pages: list[Word], at: int = 0) -> list[tuple[int, float]]:
    """Page and top of each mark."""
    start = text.index(quotation, at)
    words = dict(enumerate(pages, 1))
    marks = place_quotation(text, start, start + len(quotation), words, NONE)
    return [(number, mark.y0) for number, listed in marks.items() for mark in listed]


def test_hyphens_ligatures_accents_and_table_pipes_do_not_matter() -> None:
    words = [*line("The oﬃce was repain-", 0.1), *line("ted. Cafe\u0301 Zoë", 0.2)]
    words += [*line("Quay 12", 0.3), *line("4.50", 0.3, x=0.6)]
    text = "The office was repainted. Café Zoë\n\n| Quay 12 | 4.50 |"

    assert marks_of(text, "office was repainted", words) == [(1, 0.1), (1, 0.2)]
    assert marks_of(text, "Café Zoë", words) == [(1, 0.2)]
    assert marks_of(text, "| Quay 12 | 4.50 |", words) == [(1, 0.3), (1, 0.3)]


def test_a_sentence_that_stands_there_twice_is_marked_at_its_own_place() -> None:
    said = "Payment is due in May."
    words = [*line("Of the harbour.", 0.1), *line(said, 0.2), *line("Of the quay.", 0.3)]
    words += [*line("On boats.", 0.4), *line(said, 0.5), *line("On ropes.", 0.6)]
    text = f"Of the harbour. {said} Of the quay.\n\nOn boats. {said} On ropes."

    assert marks_of(text, said, words) == [(1, 0.2)]
    assert marks_of(text, said, words, at=60) == [(1, 0.5)]
    # Of two with the same surroundings nobody knows which.
    twice = [*line(said, 0.1), *line(said, 0.5)]
    assert marks_of(said, said, twice) == []


def test_over_a_page_break_both_pages_are_marked() -> None:
    first = [*line("Running head", 0.05), *line("The divers finished", 0.9)]
    second = [*line("Running head", 0.05), *line("their work in spring.", 0.1)]
    text = "The divers finished their work in spring."

    assert marks_of(text, text, first, second) == [(1, 0.9), (2, 0.1)]


def test_words_that_are_not_there_mark_nothing() -> None:
    words = [*line("The harbour dues are not raised.", 0.1)]
    text = "Somebody wrote other words by hand, of the harbour."

    assert marks_of(text, text, words) == []


def test_found_words_have_marks_of_their_own_within_the_passage() -> None:
    text = "The harbour dues"
    marks = place_quotation(text, 0, 16, {1: line(text, 0.1)}, frozenset({"harbour"}))[1]

    assert marks == [
        Mark(0.1, 0.1, 0.26, 0.12),
        Mark(0.14, 0.1, 0.21, 0.12, is_found=True),
    ]


def test_every_sentence_of_columns_is_marked_where_its_words_are() -> None:
    data = (CASES / "pdf" / "columns-2-justified.pdf").read_bytes()
    parsed = parse(data, name="a.pdf", max_bytes=10**7)
    words = read_page_layer(data, page=1).words
    stops = [0, *(at + 1 for at, letter in enumerate(parsed.text) if letter == ".")]
    placed = 0
    for start, end in pairwise(stops):
        marks = place_quotation(parsed.text, start, end, {1: words}, NONE).get(1, [])
        # No word in the marks is of another sentence.
        inside = [
            word.text
            for word in words
            if any(
                mark.x0 <= (word.x0 + word.x1) / 2 <= mark.x1
                and mark.y0 <= (word.y0 + word.y1) / 2 <= mark.y1
                for mark in marks
            )
        ]
        if marks:
            placed += 1
            said = Counter(filter(str.isalnum, parsed.text[start:end]))
            assert Counter(filter(str.isalnum, "".join(inside))) <= said
    assert placed > 3


starts = st.lists(st.integers(0, 500), max_size=40, unique=True).map(sorted)


@given(boundaries=starts, more=st.integers(0, 200), size=st.integers(1, 200))
def test_parts_cover_the_text_once_and_begin_at_boundaries(
    boundaries: list[int], more: int, size: int
) -> None:
    length = (boundaries[-1] if boundaries else 0) + more
    parts = split_pages(length, boundaries, size=size)

    assert parts[0].start == 0
    assert parts[-1].end == length
    assert all(left.end == right.start for left, right in pairwise(parts))
    assert {part.start for part in parts[1:]} <= set(boundaries)
    assert [part.number for part in parts] == list(range(1, parts[0].count + 1))


@given(boundaries=starts, size=st.integers(1, 200))
def test_a_part_is_longer_than_the_size_only_where_nothing_could_be_cut(
    boundaries: list[int], size: int
) -> None:
    length = (boundaries[-1] if boundaries else 0) + 1
    for part in split_pages(length, boundaries, size=size):
        inside = [boundary for boundary in boundaries if part.start < boundary < part.end]
        assert part.end - part.start <= size or not inside


def test_a_place_is_in_one_part() -> None:
    parts = split_pages(100, [0, 40, 80], size=50)

    assert [page_at(parts, offset).number for offset in (0, 39, 40, 79, 80, 100, 500)] == [
        *(1, 1, 2, 2, 3, 3, 3)
    ]


def test_the_row_that_is_quoted_is_marked_in_its_passage() -> None:
    text = "Before.\n\n| Model | Price |\n| --- | --- |\n| Ferry | 4,690 |\n| Dune | 5,250 |\n"
    start = text.index("| Dune")
    html = render_markdown(text, passage=(0, len(text)), quotation=(start, start + 16)).html
    assert '<tr class="passage quoted" id="passage" tabindex="-1">\n<td>Dune</td>' in html
    assert html.count("quoted") == html.count('id="passage"') == 1
    without = render_markdown(text, passage=(0, len(text))).html
    assert '<p class="passage" id="passage" tabindex="-1">Before.</p>' in without
