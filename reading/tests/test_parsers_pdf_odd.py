"""PDF: letters as programs draw and map them, and text that is only in annotations."""

import io

import pytest
from fpdf import FPDF
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from reading.parsers import parse
from reading.parsers.pdf import _is_prose
from reading.tests.factories_pdf import finished, page


@pytest.mark.parametrize("offset", [0.1, 0.3])
def test_bold_by_printing_twice_is_read_once(offset: float) -> None:
    document = page(12)
    for shift in (0.0, offset):
        document.text(20 + shift, 30, "BOLD letters of a bookkeeper")
    assert parse(finished(document), name="a.pdf").text == "BOLD letters of a bookkeeper"


def test_letters_that_are_spaced_out_are_words() -> None:
    document = page(12)
    across = 20.0
    for letter in "SPACED OUT TITLE":
        if letter != " ":
            document.text(across, 30, letter)
        across += document.get_string_width(letter) + 2.2
    for column in range(5):
        document.text(20 + 30 * column, 50, "ABCDE"[column])
    text = parse(finished(document), name="a.pdf").text
    assert "SPACED OUT TITLE" in text
    assert "ABCDE" not in text


def test_text_typed_on_a_page_is_read_and_hidden_notes_are_not() -> None:
    writer = PdfWriter()
    writer.add_blank_page(400, 400)
    text = _annotated(
        writer,
        (300, "/FreeText", "Approved by Ida", 0),
        (200, "/Text", "Ask the harbour master", 0),
        (100, "/FreeText", "Withdrawn", 2),
    )
    assert text.split("\n\n") == ["Approved by Ida", "Ask the harbour master"]


def test_comments_on_marks_follow_the_page_unless_they_copy_what_is_marked() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(finished(_written("The price is 40 EUR")))))
    text = _annotated(
        writer,
        (700, "/Highlight", "Is that still right?", 0),
        (700, "/Highlight", "price is 40", 0),
        (100, "/Stamp", "Seen", 0),
        (100, "/Ink", "", 0),
    )
    assert " ".join(text.split()) == "The price is 40 EUR Is that still right? Seen"


def _annotated(writer: PdfWriter, *annotations: tuple[int, str, str, int]) -> str:
    """What is read of the first page with annotations: their place, kind, text and flags."""
    notes = ArrayObject()
    for y, kind, text, flags in annotations:
        fields = {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject(kind),
            NameObject("/Contents"): TextStringObject(text),
            NameObject("/F"): NumberObject(flags),
            NameObject("/Rect"): ArrayObject(map(NumberObject, (50, y, 300, y + 20))),
        }
        notes.append(writer._add_object(DictionaryObject(fields)))
    writer.pages[0][NameObject("/Annots")] = notes
    buffer = io.BytesIO()
    writer.write(buffer)
    return parse(buffer.getvalue(), name="a.pdf").text


def test_each_chosen_line_of_a_list_is_read() -> None:
    writer = PdfWriter()
    sheet = writer.add_blank_page(400, 400)
    lines = ArrayObject(map(TextStringObject, ("Oslo", "Bergen", "Molde")))
    fields = {
        NameObject("/Type"): NameObject("/Annot"),
        NameObject("/Subtype"): NameObject("/Widget"),
        NameObject("/FT"): NameObject("/Ch"),
        NameObject("/T"): TextStringObject("Ports"),
        NameObject("/Ff"): NumberObject(1 << 21),  # several may be chosen
        NameObject("/Opt"): lines,
        NameObject("/V"): ArrayObject([lines[0], lines[2]]),
        NameObject("/Rect"): ArrayObject(map(NumberObject, (50, 100, 300, 160))),
    }
    field = writer._add_object(DictionaryObject(fields))
    sheet[NameObject("/Annots")] = ArrayObject([field])
    writer.root_object[NameObject("/AcroForm")] = writer._add_object(
        DictionaryObject({NameObject("/Fields"): ArrayObject([field])})
    )
    buffer = io.BytesIO()
    writer.write(buffer)
    assert parse(buffer.getvalue(), name="a.pdf").text.split() == ["Oslo", "Molde"]


def test_a_ligature_of_long_s_and_t_is_found_as_st() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(finished(_written("fa$er")))))
    font = next(iter(writer.pages[0]["/Resources"]["/Font"].values())).get_object()  # type: ignore[index]
    mapping = DecodedStreamObject()
    mapping.set_data(
        b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange 5 beginbfchar\n"
        b"<66> <0066> <61> <0061> <24> <FB05> <65> <0065> <72> <0072>\nendbfchar endcmap"
    )
    font[NameObject("/ToUnicode")] = writer._add_object(mapping)
    buffer = io.BytesIO()
    writer.write(buffer)
    assert parse(buffer.getvalue(), name="a.pdf").text == "faster"


def _written(text: str) -> FPDF:
    document = page()
    document.text(20, 30, text)
    return document


@pytest.mark.parametrize(
    ("text", "is_prose"),
    [
        ("Výbava na přání", True),
        ("Faktura za usługi wykonane w kwietniu", True),
        ("の削除・インストールについて", True),
        ("7KLV LV D WHVW RI VKLIWHG JO\\SKV", False),
        ("!\"#$%&' ()*+ ,-./", False),
        ("\u0101\u0142\u01a3\u0203 \u0190\u0183", False),
    ],
)
def test_codes_without_a_map_are_believed_where_they_read_as_text(
    text: str, is_prose: bool
) -> None:
    assert _is_prose(text) is is_prose
