"""Office files, OpenDocument and books that are bombs, torn or odd. See also `cases`."""

import io
import zipfile
from typing import Any

import pytest
import xlsxwriter
from docx import Document
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParsedDocument, ParseError, detect_media_type, parse
from reading.parsers.base import DEFAULT_LIMITS, Limits
from reading.parsers.docx import MEDIA_TYPE as WORD
from reading.parsers.docx import parse_docx
from reading.parsers.normalise import normalise_text
from reading.parsers.odf import parse_odf
from reading.parsers.office_package import OfficePackage, W
from reading.parsers.pptx import MEDIA_TYPE as POWERPOINT
from reading.parsers.pptx import parse_pptx
from reading.parsers.xlsx import MEDIA_TYPE as EXCEL
from reading.parsers.zip_archive import open_zip
from reading.tests.factories_books import epub, odf
from reading.tests.factories_office import (
    changed,
    docx,
    pptx,
    xlsx,
)

DOCX = docx("# Title", "Text of a document.")
PPTX = pptx(["Title", "Text of a slide."])
XLSX = xlsx({"Sheet": [["Name", "Age"], ["Ada", 36]]})
MEBIBYTE = 1024 * 1024


def refusal(data: bytes, name: str = "a.docx", limits: Limits = DEFAULT_LIMITS) -> ParseError:
    def read() -> ParsedDocument:
        whole = limits is DEFAULT_LIMITS
        return parse(data, name=name) if whole else parse_docx(data, name=name, limits=limits)

    with pytest.raises(ParseError) as caught:
        read()
    return caught.value


def with_many_members(count: int) -> bytes:
    return changed(DOCX, {f"word/media/{number}.bin": b"" for number in range(count)})


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (DOCX, "a.docx", WORD),
        (DOCX, "a.docm", WORD),
        (DOCX, "a.dotx", WORD),
        (DOCX, "a", WORD),
        (XLSX, "a.xlsm", EXCEL),
        (XLSX, "a.docx", EXCEL),
        (XLSX, "a.pdf", EXCEL),
        (PPTX, "a.ppsx", POWERPOINT),
        (PPTX, "a.txt", POWERPOINT),
    ],
)
def test_what_is_in_the_file_decides_how_it_is_read(
    data: bytes, name: str, media_type: str
) -> None:
    assert detect_media_type(data, name=name) == media_type
    assert parse(data, name=name).media_type == media_type


@pytest.mark.parametrize("member", ["word/document.xml", "word/media/zeros.bin", "zeros.txt"])
def test_a_bomb_is_refused_before_anything_is_unpacked(member: str) -> None:
    error = refusal(changed(DOCX, {member: b"\0" * 20 * MEBIBYTE}))
    assert error.code == "too_large"
    assert "20,971,520 bytes" in error.message


def test_a_zip_of_zeros_renamed_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"\0" * 20 * MEBIBYTE)
    assert refusal(buffer.getvalue()).code == "too_large"


def test_what_unpacks_to_more_than_allowed_in_sum_is_refused() -> None:
    data = changed(DOCX, {f"word/media/{n}.txt": b"abc" * 1000 for n in range(10)})
    assert refusal(data, limits=Limits(max_unpacked_bytes=20_000)).code == "too_large"
    assert parse(data, name="a.docx").text == "# Title\n\nText of a document.\n"


def test_a_part_that_is_held_whole_may_be_so_large_and_one_that_is_streamed_larger() -> None:
    data = docx(*(f"Paragraph {number}" for number in range(200)))
    document = parse_docx(data, name="a", limits=Limits(max_part_bytes=5_000))
    assert "Paragraph 199" in document.text
    error = refusal(data, limits=Limits(max_part_bytes=500))
    assert (error.code, "500 bytes" in error.message) == ("too_large", True)


def test_too_many_parts_are_refused() -> None:
    data = with_many_members(60)
    error = refusal(data, limits=Limits(max_members=50))
    assert (error.code, "50 parts" in error.message) == ("too_large", True)
    assert parse(data, name="a.docx").title == "Title"


def test_a_part_that_is_read_again_and_again_counts_each_time() -> None:
    slides = pptx(["Title", *(f"Line {number}" for number in range(300))])
    with zipfile.ZipFile(io.BytesIO(slides)) as archive:
        main = archive.read("ppt/presentation.xml")
        unpacked = sum(info.file_size for info in archive.infolist())
    one = b'<p:sldId id="256" r:id="rId1"/>'
    data = changed(slides, {"ppt/presentation.xml": main.replace(one, one * 200)})
    with pytest.raises(ParseError, match="unpacks to more") as caught:
        parse_pptx(data, name="a", limits=Limits(max_unpacked_bytes=unpacked * 3))
    assert caught.value.code == "too_large"


def test_what_was_read_of_a_large_part_is_let_go() -> None:
    data = docx(*(f"Paragraph {number}" for number in range(20_000)))
    with open_zip(data, DEFAULT_LIMITS) as archive:
        package = OfficePackage(archive)
        held = [len(node.getparent()) for node in package.stream(package.main, (f"{W}body", "*"))]
    assert len(held) == 20_001
    assert max(held) < 1_000


MEMBERS = [
    (DOCX, "word/document.xml"),
    (DOCX, "word/styles.xml"),
    (PPTX, "ppt/slides/slide1.xml"),
    (PPTX, "ppt/presentation.xml"),
    (XLSX, "xl/workbook.xml"),
    (XLSX, "xl/styles.xml"),
    (XLSX, "xl/worksheets/sheet1.xml"),
]


@settings(deadline=None, max_examples=100)
@given(
    member=st.sampled_from(MEMBERS),
    place=st.floats(0, 1),
    patch=st.sampled_from(['"', "<", ">", "", "9" * 20, "-1", "é", " x='1'", "<w:tbl/>", "</c>"]),
    width=st.integers(0, 30),
)
def test_a_damaged_part_gives_a_document_or_a_parse_error(
    member: tuple[bytes, str], place: float, patch: str, width: int
) -> None:
    data, name = member
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read(name).decode()
    at = int(place * len(text))
    try:
        document = parse(changed(data, {name: text[:at] + patch + text[at + width :]}), name="a")
    except ParseError:
        return
    assert document.text.strip()
    for heading in document.headings:
        assert document.text.startswith("#" * heading.level + " ", heading.offset)


def test_a_deck_of_three_hundred_slides_keeps_every_page() -> None:
    document = parse(pptx(*([f"Slide {n}", f"Fact {n}"] for n in range(1, 301))), name="a.pptx")
    assert [page.number for page in document.pages] == list(range(1, 301))
    for page in document.pages:
        assert document.text.startswith(f"## Slide {page.number}\n\n", page.offset)


def test_more_slides_than_allowed_are_refused() -> None:
    with pytest.raises(ParseError, match="2 slides") as caught:
        parse_pptx(pptx(["A"], ["B"], ["C"]), name="a", limits=Limits(max_pages=2))
    assert caught.value.code == "too_large"


def test_a_bomb_in_a_book_is_refused() -> None:
    with pytest.raises(ParseError) as caught:
        parse(changed(epub("<p>x</p>"), {"OEBPS/c 1.xhtml": b" " * 20_000_000}), name="a.epub")
    assert caught.value.code == "too_large"


def test_filled_cells_that_are_repeated_without_end_are_refused() -> None:
    repeated = 'table:number-columns-repeated="1000"'
    cell = f"<table:table-cell {repeated}><text:p>x</text:p></table:table-cell>"
    row = f'<table:table-row table:number-rows-repeated="1000">{cell}</table:table-row>'
    data = odf("spreadsheet", f'<table:table table:name="S">{row * 1000}</table:table>')
    with pytest.raises(ParseError, match="10,000 characters") as caught:
        parse_odf(data, name="a.ods", limits=Limits(max_characters=10_000))
    assert caught.value.code == "too_large"


#: Text that a file may hold: XML has no control characters, and `\\u00ad` is dropped on purpose.
TEXT = st.text(
    st.characters(
        exclude_categories=["Cc", "Cs", "Cn", "Co", "Zl", "Zp"], exclude_characters="\u00ad|"
    ),
    min_size=1,
    max_size=40,
).filter(str.strip)


def saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def words(text: str) -> str:
    return " ".join(normalise_text(text).split())


@settings(deadline=None, max_examples=15)
@given(blocks=st.lists(st.tuples(st.integers(0, 4), TEXT), min_size=1, max_size=6), cell=TEXT)
def test_no_word_of_a_word_file_is_lost(blocks: list[tuple[int, str]], cell: str) -> None:
    source = Document()
    for level, text in blocks:
        if level:
            source.add_heading(text, level)
        else:
            source.add_paragraph(text)
    table = source.add_table(rows=2, cols=2)
    table.cell(0, 0).text = table.cell(0, 1).text = "name"
    table.cell(1, 0).text, table.cell(1, 1).text = cell, "x"
    document = parse(saved(source), name="a.docx")
    at = 0
    for _, text in blocks:
        at = document.text.index(words(text), at) + len(words(text))
    assert words(cell) in document.text[at:]
    for heading in document.headings:
        assert document.text.startswith(f"{'#' * heading.level} {heading.title}", heading.offset)
    titled = [words(text) for level, text in blocks if level]
    assert [heading.title for heading in document.headings] == titled


@settings(deadline=None, max_examples=15)
@given(rows=st.lists(st.lists(TEXT, min_size=2, max_size=4), min_size=2, max_size=6))
def test_no_cell_of_a_workbook_is_lost(rows: list[list[str]]) -> None:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as source:
        sheet = source.add_worksheet("S")
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                sheet.write_string(number, column, text)
    document = parse(buffer.getvalue(), name="a.xlsx")
    at = 0
    for row in rows:
        for text in row:
            at = document.text.index(words(text), at)
