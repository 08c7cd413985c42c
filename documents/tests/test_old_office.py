"""Office files of before 2007: converted by LibreOffice, those of Word and PowerPoint refused
without it."""

import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from documents.ingestion.preparation import parse_content
from documents.ingestion.sources import content_from_bytes, content_from_file, parser_limits
from documents.ingestion.stored_files import has_own_look
from reading import libreoffice
from reading.parsers import ParsedDocument, ParseError
from reading.tests.factories_office import old_drawing
from reading.tests.test_parsers_cases import CASES

LEASE = CASES / "doc/lease.doc"
#: As LibreOffice writes it without a ZIP around it.
TALK = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.presentation"><office:body>
<office:presentation><draw:page><draw:frame svg:width="20cm" svg:height="8cm"><draw:text-box>
<text:p>The boiler is checked in October.</text:p></draw:text-box></draw:frame></draw:page>
</office:presentation></office:body></office:document>"""
#: The same in a workbook without cells.
BOXES = (
    TALK.replace("presentation", "spreadsheet")
    .replace(
        " xmlns:text",
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text',
        1,
    )
    .replace("<draw:page>", '<table:table table:name="Boiler"><table:shapes>')
    .replace("</draw:page>", "</table:shapes></table:table>")
)

needs_libreoffice = pytest.mark.skipif(
    not libreoffice.program(), reason="LibreOffice is not installed"
)


def read(path: Path) -> ParsedDocument:
    content = content_from_file(path, name=path.name, max_bytes=settings.MAX_UPLOAD_BYTES)
    return parse_content(content, name=path.name, declared={}, limits=parser_limits())


@needs_libreoffice
def test_an_old_word_file_is_read_with_its_structure() -> None:
    parsed = read(LEASE)
    assert parsed.media_type == "application/msword"
    assert [(each.level, each.title) for each in parsed.headings] == [
        (1, "Mietvertrag"),
        (2, "Räume"),
    ]
    assert "- Werkstatt\n- Lagerraum" in parsed.text
    assert "| Werkstatt | 84 m² |" in parsed.text
    assert parsed.language == ""
    assert has_own_look(parsed.media_type)  # so that the file itself is kept


def converted(source: str, tmp_path: Path, suffix: str) -> Path:
    """The file that LibreOffice writes of `source`."""
    flat = tmp_path / "source.xml"
    flat.write_text(source)
    profile = (tmp_path / "profile").as_uri()
    subprocess.run(
        [libreoffice.program(), f"-env:UserInstallation={profile}", "--headless", "--convert-to",
         suffix, "--outdir", tmp_path, flat],
        check=True, capture_output=True,
    )  # fmt: skip
    return flat.with_suffix(f".{suffix}")


@needs_libreoffice
def test_an_old_presentation_is_read(tmp_path: Path) -> None:
    parsed = read(converted(TALK, tmp_path, "ppt"))
    assert parsed.media_type == "application/vnd.ms-powerpoint"
    assert "The boiler is checked in October." in parsed.text
    assert parsed.pages[0].number == 1


@needs_libreoffice
def test_a_damaged_file_is_refused_with_a_cure(tmp_path: Path) -> None:
    torn = tmp_path / "torn.doc"
    data = LEASE.read_bytes()
    torn.write_bytes(data[:5632] + bytes(5120) + data[10752:])  # without its text
    with pytest.raises(ParseError, match=r"save it as \.docx") as caught:
        read(torn)
    assert caught.value.code == "malformed"


@needs_libreoffice
def test_no_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    read(LEASE)
    assert list(tmp_path.iterdir()) == []


def test_without_libreoffice_both_cures_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libreoffice, "program", lambda: "")
    with pytest.raises(ParseError, match=r"Save it as \.docx, or install LibreOffice") as caught:
        read(LEASE)
    assert caught.value.code == "unsupported"


def test_other_compound_files_are_not_converted() -> None:
    content = content_from_bytes(old_drawing())
    with pytest.raises(ParseError, match=r"old Visio drawing .*Export it as PDF"):
        parse_content(content, name="a.doc", declared={}, limits=parser_limits())


@needs_libreoffice
def test_a_workbook_that_has_only_text_boxes_is_read(tmp_path: Path) -> None:
    parsed = read(converted(BOXES, tmp_path, "xls"))
    assert parsed.media_type == "application/vnd.ms-excel"
    assert "The boiler is checked in October." in parsed.text


@needs_libreoffice
def test_an_empty_workbook_is_refused_for_that(tmp_path: Path) -> None:
    empty = converted(BOXES.replace("The boiler is checked in October.", ""), tmp_path, "xls")
    with pytest.raises(ParseError, match="no filled cells") as caught:
        read(empty)
    assert caught.value.code == "no_text"
