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
    sheet = writer.add_blank_page(400, 400)
    notes = ArrayObject()
    for y, kind, text, flags in (
        (300, "/FreeText", "Approved by Ida", 0),
        (200, "/Text", "Ask the harbour master", 0),
        (100, "/FreeText", "Withdrawn", 2),
    ):
        notes.append(
            writer._add_object(
                DictionaryObject(
                    {
                        NameObject("/Type"): NameObject("/Annot"),
                        NameObject("/Subtype"): NameObject(kind),
                        NameObject("/Contents"): TextStringObject(text),
                        NameObject("/F"): NumberObject(flags),
                        NameObject("/Rect"): ArrayObject(map(NumberObject, (50, y, 300, y + 20))),
                    }
                )
            )
        )
    sheet[NameObject("/Annots")] = notes
    buffer = io.BytesIO()
    writer.write(buffer)
    text = parse(buffer.getvalue(), name="a.pdf").text
    assert text.split("\n\n") == ["Approved by Ida", "Ask the harbour master"]


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
