"""Office files that are bombs, torn, locked or misnamed: each is refused with the cure."""

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParsedDocument, ParseError, detect_media_type, parse
from reading.parsers.base import DEFAULT_LIMITS, ErrorCode, Limits
from reading.parsers.docx import MEDIA_TYPE as WORD
from reading.parsers.docx import parse_docx
from reading.parsers.office_package import OfficePackage, W
from reading.parsers.pptx import MEDIA_TYPE as POWERPOINT
from reading.parsers.pptx import parse_pptx
from reading.parsers.xlsx import MEDIA_TYPE as EXCEL
from reading.parsers.zip_archive import open_zip
from reading.tests.factories_files import GZIP
from reading.tests.factories_office import (
    NAMES,
    changed,
    docx,
    encrypted_office,
    lying_about_size,
    old_office,
    paragraph,
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


def document_with(prolog: str, text: str) -> bytes:
    body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
    main = f"{prolog}<w:document {NAMES}>{body}</w:document>"
    return changed(DOCX, {"word/document.xml": main})


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


def test_a_main_part_of_another_name_is_found_by_its_relation() -> None:
    with zipfile.ZipFile(io.BytesIO(DOCX)) as archive:
        main = archive.read("word/document.xml")
        links = archive.read("_rels/.rels").replace(b"word/document.xml", b"/Word/Document2.xml")
    data = changed(
        DOCX, {"word/document.xml": None, "word\\document2.xml": main, "_rels/.rels": links}
    )
    assert "Text of a document." in parse(data, name="a.docx").text


@pytest.mark.parametrize(
    ("data", "name", "code", "message"),
    [
        (GZIP, "a.docx", "wrong_type", "named .docx but is a gzip archive"),
        (b"Just text.", "a.xlsx", "wrong_type", "named .xlsx but is a text file"),
        (b"<!doctype html><p>Please log in</p>", "a.pptx", "wrong_type", "is an HTML page"),
        (encrypted_office(), "a.docx", "encrypted", "remove the password"),
        (old_office(), "a.doc", "unsupported", "Save it as .docx or .pptx, or convert it"),
        (old_office(), "a.docx", "unsupported", "Save it as .docx or .pptx, or convert it"),
        (DOCX[: len(DOCX) // 2], "a.docx", "truncated", "Download or copy it again"),
        (XLSX[:-30], "a.xlsx", "truncated", "Download or copy it again"),
        (changed(DOCX, {"word/document.xml": None, "word/x.xml": "<x/>"}), "a.docx", "malformed",
         "main part is missing"),
        (changed(DOCX, {"word/document.xml": "<w:document"}), "a.docx", "malformed", "damaged"),
        (changed(PPTX, {"ppt/slides/slide1.xml": b"\0\1"}), "a.pptx", "malformed", "save it again"),
        (changed(DOCX, {"word/styles.xml": "no xml"}), "a.docx", "malformed", "word/styles.xml"),
        (changed(XLSX, {"xl/workbook.xml": None, "xl/workbook.bin": b"x"}), "a.xlsb", "no_text",
         "no filled cells"),
        (changed(DOCX, {"word/document.xml": f"<w:document {NAMES}><w:body/></w:document>"}),
         "a.docx", "no_text", "OCR"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_are_refused_with_the_cure(
    data: bytes, name: str, code: ErrorCode, message: str
) -> None:
    error = refusal(data, name)
    assert (error.code, message in error.message) == (code, True), error.message


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


def test_a_bomb_inside_of_a_bomb_is_never_opened() -> None:
    inner = changed(DOCX, {"zeros": b"\0" * 20 * MEBIBYTE})
    data = changed(DOCX, {"word/embeddings/inner.docx": inner})
    assert parse(data, name="a.docx").text == "# Title\n\nText of a document.\n"


def test_parts_that_lie_one_in_another_are_refused() -> None:
    """Many entries of the directory may share one packed text, which so is counted often."""
    data = changed(DOCX, {"word/media/a.txt": bytes(range(256)) * 40})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entry = next(info for info in archive.infolist() if info.filename.endswith("a.txt"))
    record = data[data.rindex(b"PK\x01\x02") : data.rindex(b"PK\x05\x06")]
    assert record.endswith(entry.filename.encode())
    end = data[data.rindex(b"PK\x05\x06") :]
    start = int.from_bytes(end[16:20], "little")
    copies = b"".join(record.replace(b"a.txt", b"%c.txt" % letter) for letter in range(98, 123))
    directory = data[start : data.rindex(b"PK\x05\x06")] + copies
    count = int.from_bytes(end[8:10], "little") + 25
    fields = count.to_bytes(2, "little") * 2 + len(directory).to_bytes(4, "little")
    nested = data[:start] + directory + end[:8] + fields + end[16:]
    assert refusal(nested).code == "too_large"


def test_too_many_parts_are_refused() -> None:
    data = with_many_members(60)
    error = refusal(data, limits=Limits(max_members=50))
    assert (error.code, "50 parts" in error.message) == ("too_large", True)
    assert parse(data, name="a.docx").title == "Title"


def test_a_part_that_is_longer_than_it_says_is_damaged() -> None:
    data = lying_about_size(docx("word " * 5000), "word/document.xml", size=1000)
    assert refusal(data).code == "malformed"


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


def test_a_member_with_a_password_is_said_to_have_one() -> None:
    data = bytearray(DOCX)
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = data.find(mark)
        while place >= 0:
            data[place + at] |= 1
            place = data.find(mark, place + 1)
    assert refusal(bytes(data)).code == "encrypted"


def test_packings_that_office_never_uses_are_refused() -> None:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(DOCX)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert refusal(buffer.getvalue()).code == "malformed"


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("prolog", "text"),
    [
        (f'<!DOCTYPE x [<!ENTITY a0 "ha">{LAUGHS}]>', "&a11;"),
        ('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]>', "&f;"),
        ('<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">', "text"),
        (f"<!--{' ' * 70_000}--><!DOCTYPE x [<!ENTITY f 'x'>]>", "&f;"),
    ],
)
def test_entities_are_refused_however_they_are_declared(prolog: str, text: str) -> None:
    error = refusal(document_with(prolog, text))
    assert (error.code, "document type" in error.message) == ("malformed", True)


def test_entities_in_another_encoding_are_refused_too() -> None:
    main = f'<!DOCTYPE x [<!ENTITY f "x">]><w:document {NAMES}/>'
    error = refusal(changed(DOCX, {"word/document.xml": main.encode("utf-16")}))
    assert (error.code, "document type" in error.message) == ("malformed", True)


def test_elements_nested_without_end_are_refused() -> None:
    deep = "<w:sdt>" * 5000 + paragraph("x") + "</w:sdt>" * 5000
    assert refusal(docx(body=deep)).code == "malformed"


def test_elements_nested_as_deep_as_the_library_allows_are_read() -> None:
    deep = "<w:sdt>" * 240 + paragraph("x") + "</w:sdt>" * 240
    assert parse(docx(body=deep), name="a.docx").text == "x\n"


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
