"""PowerPoint files: each slide a page with a heading, its lists, tables, diagrams and notes."""

import io
import zipfile

import pytest

from reading.parsers import Heading, Page, ParseError, parse
from reading.parsers.base import Limits
from reading.parsers.pptx import parse_pptx
from reading.tests.factories_office import NAMES, changed, pptx


def shape(content: str, *, name: str = "sp") -> str:
    return f"<p:{name}><p:nvSpPr><p:cNvPr/><p:nvPr/></p:nvSpPr>{content}</p:{name}>"


def text_box(*paragraphs: str) -> str:
    return shape(f"<p:txBody><a:bodyPr/><a:lstStyle/>{''.join(paragraphs)}</p:txBody>")


def line(text: str, properties: str = "") -> str:
    return f"<a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p>"


def test_each_slide_is_a_page_with_its_title_as_heading() -> None:
    document = parse(
        pptx(["Travel", "Book early", "\tBy train"], ["Costs", "Two", "Three"]), name="a"
    )
    assert document.text == (
        "## Travel\n\n- Book early\n  - By train\n\n## Costs\n\n- Two\n- Three\n"
    )
    second = document.text.index("## Costs")
    assert document.pages == (Page(0, 1), Page(second, 2))
    assert document.headings == (Heading(0, 2, "Travel"), Heading(second, 2, "Costs"))
    assert document.title == "Travel"


def test_a_slide_without_title_does_not_stand_under_the_one_before() -> None:
    document = parse(pptx(["Travel", "x"], ["", "Alone"], []), name="deck.pptx")
    assert [heading.title for heading in document.headings] == ["Travel", "Slide 2", "Slide 3"]


def test_notes_follow_their_slide_and_hidden_slides_are_named() -> None:
    document = parse(pptx(["A"], ["B"], notes={1: "Say this."}, hidden=[2]), name="a.pptx")
    assert document.text == "## A\n\n> Notes: Say this.\n\n## B\n"
    assert document.metadata["hidden_slides"] == [2]


def test_a_typed_footer_is_written_once_and_a_computed_date_never() -> None:
    def footer(kind: str, content: str) -> str:
        text = f"<p:txBody><a:p>{content}</a:p></p:txBody>"
        return shape(text).replace("<p:nvPr/>", f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>')

    typed = footer("ftr", "<a:r><a:t>Confidential</a:t></a:r>")
    computed = footer("dt", '<a:fld type="datetime1"><a:t>1 May</a:t></a:fld>')
    data = pptx(["A", "x"], ["B", "y"])
    data = changed(
        data,
        {
            f"ppt/slides/slide{number}.xml": _member(data, f"ppt/slides/slide{number}.xml").replace(
                "</p:spTree>", f"{typed}{computed}</p:spTree>"
            )
            for number in (1, 2)
        },
    )
    text = parse(data, name="a.pptx").text
    assert text.count("Confidential") == 1
    assert "May" not in text


def _member(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name).decode()


def test_shapes_of_every_kind_are_read_in_their_order() -> None:
    rows = "".join(
        f"<a:tr><a:tc><a:txBody>{line(one)}</a:txBody></a:tc>"
        f"<a:tc{more}><a:txBody>{line(two)}</a:txBody></a:tc></a:tr>"
        for one, two, more in (
            ("City", "Land", ""),
            ("Ulm", "BW", ""),
            ("Aalen", "", ' vMerge="1"'),
        )
    )
    frame = (
        "<p:graphicFrame><a:graphic><a:graphicData>{}</a:graphicData></a:graphic></p:graphicFrame>"
    )
    number = '<a:fld type="slidenum"><a:t>7</a:t></a:fld>'
    shapes = (
        f"<p:grpSp>{text_box(line('grouped'))}</p:grpSp>"
        f"<mc:AlternateContent><mc:Choice>{text_box(line('chosen'))}</mc:Choice>"
        f"<mc:Fallback>{text_box(line('older'))}</mc:Fallback></mc:AlternateContent>"
        + frame.format(f"<a:tbl>{rows}</a:tbl>")
        + frame.format('<dgm:relIds r:dm="diagramData"/>')
        + '<p:pic><p:nvPicPr><p:cNvPr descr="A map"/></p:nvPicPr></p:pic>'
        '<p:pic><p:nvPicPr><p:cNvPr descr="A cat. Description automatically generated"/>'
        "</p:nvPicPr></p:pic>"
        + text_box(f"<a:p><a:r><a:t>one</a:t></a:r><a:br/><a:r><a:t>two</a:t></a:r>{number}</a:p>")
    )
    diagram = f"<dgm:dataModel {NAMES}><dgm:t>{line('Step')}</dgm:t></dgm:dataModel>"
    document = parse(pptx(["T"], shapes=shapes, parts={"diagramData": diagram}), name="a.pptx")
    assert document.text == (
        "## T\n\ngrouped\n\nchosen\n\n| City | Land |\n| - | - |\n| Ulm | BW |\n| Aalen | BW |\n\n"
        "- Step\n\nA map\n\none two\n"
    )


def test_bullets_and_numbers_are_those_that_the_slide_says() -> None:
    numbered = "<a:pPr><a:buAutoNum/></a:pPr>"
    document = parse(
        pptx(
            ["T"],
            shapes=text_box(
                line("plain"),
                line("first", numbered),
                line("second", numbered),
                line("point", '<a:pPr lvl="1"><a:buChar char="-"/></a:pPr>'),
            ),
        ),
        name="a.pptx",
    )
    assert document.text == "## T\n\nplain\n\n1. first\n2. second\n   - point\n"


def test_a_deck_of_three_hundred_slides_keeps_every_page() -> None:
    document = parse(pptx(*([f"Slide {n}", f"Fact {n}"] for n in range(1, 301))), name="a.pptx")
    assert [page.number for page in document.pages] == list(range(1, 301))
    for page in document.pages:
        assert document.text.startswith(f"## Slide {page.number}\n\n", page.offset)


def test_a_deck_without_text_is_refused() -> None:
    with pytest.raises(ParseError, match="OCR") as caught:
        parse(pptx([], []), name="a.pptx")
    assert caught.value.code == "no_text"
    with pytest.raises(ParseError) as caught:
        parse(pptx(), name="a.pptx")
    assert caught.value.code == "no_text"


def test_more_slides_than_allowed_are_refused() -> None:
    with pytest.raises(ParseError, match="2 slides") as caught:
        parse_pptx(pptx(["A"], ["B"], ["C"]), name="a", limits=Limits(max_pages=2))
    assert caught.value.code == "too_large"


def test_the_title_of_the_properties_is_taken_unless_a_program_gave_it() -> None:
    assert parse(pptx(["A"], core={"title": "Review"}), name="a.pptx").title == "Review"
    assert parse(pptx(["A"], core={"title": "PowerPoint Presentation"}), name="a.pptx").title == "A"
