"""Office files, made part by part, so that a test can say exactly what is in one."""

import io
import struct
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

_SCHEMAS = "http://schemas.openxmlformats.org"
_RELATIONS = f"{_SCHEMAS}/officeDocument/2006/relationships"
_PACKAGE = f"{_SCHEMAS}/package/2006"
NAMES = " ".join(
    f'xmlns:{prefix}="{address}"'
    for prefix, address in {
        "w": f"{_SCHEMAS}/wordprocessingml/2006/main",
        "a": f"{_SCHEMAS}/drawingml/2006/main",
        "p": f"{_SCHEMAS}/presentationml/2006/main",
        "c": f"{_SCHEMAS}/drawingml/2006/chart",
        "dgm": f"{_SCHEMAS}/drawingml/2006/diagram",
        "m": f"{_SCHEMAS}/officeDocument/2006/math",
        "mc": f"{_SCHEMAS}/markup-compatibility/2006",
        "r": _RELATIONS,
    }.items()
)
WORD_STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
    f'<w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr></w:style>'
    for level in range(1, 7)
)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

Parts = Mapping[str, str]


def docx(*blocks: str, body: str = "") -> bytes:
    """A Word document. A block is a paragraph, or a heading if it begins with `# ` to `###### `;
    `body` is raw XML behind them."""
    content = "".join(map(_word_block, blocks)) + body
    styles = f"<w:styles {NAMES}>{WORD_STYLES}</w:styles>"
    main = f"<w:document {NAMES}><w:body>{content}<w:sectPr/></w:body></w:document>"
    links = {_relations_of("word/document.xml"): _relations_by_target({"styles.xml": "styles"})}
    return _package("word/document.xml", main, {**links, "word/styles.xml": styles})


def paragraph(text: str, *, style: str = "", properties: str = "") -> str:
    """XML of a Word paragraph."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{properties}</w:pPr>{run(text)}</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def pptx(*slides: Sequence[str]) -> bytes:
    """A deck. A slide is its title and its bullets."""
    members: dict[str, str] = {}
    ids = []
    for number, lines in enumerate(slides, start=1):
        shapes = _slide_shapes(lines)
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        members[f"ppt/slides/slide{number}.xml"] = f"<p:sld {NAMES}>{tree}</p:sld>"
        ids.append(f'<p:sldId id="{255 + number}" r:id="rId{number}"/>')
    links = {f"slides/slide{number}.xml": "slide" for number in range(1, len(slides) + 1)}
    main = f"<p:presentation {NAMES}><p:sldIdLst>{''.join(ids)}</p:sldIdLst></p:presentation>"
    members[_relations_of("ppt/presentation.xml")] = _relations_by_target(links)
    return _package("ppt/presentation.xml", main, members)


def xlsx(
    sheets: Mapping[str, Iterable[Sequence[object]]],
    *,
    merged: Sequence[str] = (),
    formats: Sequence[str] = (),
) -> bytes:
    """A workbook of inline texts and numbers; None is no cell.

    A pair is a number and the place of its format in `formats`; a text that begins with `<` is
    what follows the place in the XML of a cell. `merged` areas such as `A1:A3` are of every
    sheet.
    """
    members = {}
    listed = []
    for number, (name, rows) in enumerate(sheets.items(), start=1):
        members[f"xl/worksheets/sheet{number}.xml"] = sheet_xml(rows, merged=merged)
        listed.append(f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>')
    members["xl/styles.xml"] = _excel_styles(formats)
    links = {f"worksheets/sheet{number}.xml": "worksheet" for number in range(1, len(sheets) + 1)}
    members[_relations_of("xl/workbook.xml")] = _relations_by_target(
        links | {"styles.xml": "styles"}
    )
    main = f"<workbook {_EXCEL} {NAMES}><sheets>{''.join(listed)}</sheets></workbook>"
    return _package("xl/workbook.xml", main, members)


def sheet_xml(rows: Iterable[Sequence[object]], *, merged: Sequence[str] = ()) -> str:
    """A worksheet's part; a row that is empty is not written."""
    written = (_excel_row(number, row) for number, row in enumerate(rows, start=1) if row)
    areas = "".join(f'<mergeCell ref="{area}"/>' for area in merged)
    return (
        f'<worksheet {_EXCEL}><dimension ref="A1:XFD1048576"/>'
        f"<sheetData>{''.join(written)}</sheetData>"
        f"{f'<mergeCells>{areas}</mergeCells>' if areas else ''}</worksheet>"
    )


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """Members in their order, packed."""
    buffer = io.BytesIO()
    with _writer(buffer) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def changed(data: bytes, members: Mapping[str, str | bytes | None]) -> bytes:
    """The file with members replaced or added; None removes one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, _writer(buffer) as target:
        for name in source.namelist():
            if name not in members:
                target.writestr(name, source.read(name))
        for name, content in members.items():
            if content is not None:
                target.writestr(name, content)
    return buffer.getvalue()


def lying_about_size(data: bytes, member: str, *, size: int) -> bytes:
    """The file with another unpacked size declared for a member, here and in the directory."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo(member)
        true = struct.pack("<II", info.compress_size, info.file_size)
    return data.replace(true, struct.pack("<II", info.compress_size, size))


def old_drawing() -> bytes:
    """The container of .doc, .xls and .ppt, with the name of a Visio drawing in it."""
    return OLE + b"\0" * 504 + "VisioDocument".encode("utf-16-le").ljust(512, b"\0")


_EXCEL = f'xmlns="{_SCHEMAS}/spreadsheetml/2006/main"'


def _package(main_name: str, main: str, members: Parts) -> bytes:
    written = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": (
            f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="rId1" Type="{_RELATIONS}/officeDocument" Target="{main_name}"/>'
            "</Relationships>"
        ),
        main_name: main,
    }
    return zipped(written | dict(members))


def _writer(buffer: io.BytesIO) -> zipfile.ZipFile:
    return zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)


def _relations_of(part: str) -> str:
    folder, _, name = part.rpartition("/")
    return f"{folder}/_rels/{name}.rels"


def _relations_by_target(kinds: Parts) -> str:
    links = (
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for number, (target, kind) in enumerate(kinds.items(), start=1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(links)}</Relationships>'


def _word_block(block: str) -> str:
    marks, _, title = block.partition(" ")
    is_heading = title and set(marks) == {"#"}
    return paragraph(title, style=f"Heading{len(marks)}") if is_heading else paragraph(block)


def _slide_shapes(lines: Sequence[str]) -> str:
    title, *bullets = lines or [""]
    return (_shape("title", [title]) if title else "") + (
        _shape("body", bullets) if bullets else ""
    )


def _shape(kind: str, paragraphs: Iterable[str]) -> str:
    """A placeholder; a tab at the start of a paragraph is a level of its list."""
    texts = "".join(
        f'<a:p><a:pPr lvl="{len(text) - len(text.lstrip(chr(9)))}"/>'
        f"<a:r><a:t>{escape(text.strip())}</a:t></a:r></a:p>"
        for text in paragraphs
    )
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="{kind}"/><p:cNvSpPr/><p:nvPr><p:ph type="{kind}"/>'
        f"</p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/>{texts}</p:txBody></p:sp>"
    )


def _excel_row(number: int, row: Sequence[object]) -> str:
    cells = (_excel_cell(f"{_column(at)}{number}", value) for at, value in enumerate(row))
    return f'<row r="{number}">{"".join(cells)}</row>'


def _excel_cell(place: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith("<"):
        return f'<c r="{place}"{value[1:]}'
    match value:
        case int() | float():
            content = f"><v>{value}</v>"
        case (number, int() as style):
            content = f' s="{style + 2}"><v>{number}</v>'
        case _:
            text = escape(str(value))
            content = f' t="inlineStr"><is><t xml:space="preserve">{text}</t></is>'
    return f'<c r="{place}"{content}</c>'


def _excel_styles(formats: Sequence[str]) -> str:
    own = "".join(
        f'<numFmt numFmtId="{170 + at}" formatCode={quoteattr(code)}/>'
        for at, code in enumerate(formats)
    )
    styles = "".join(
        f'<xf numFmtId="{number}"/>' for number in (0, 14, *range(170, 170 + len(formats)))
    )
    return f"<styleSheet {_EXCEL}><numFmts>{own}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>"


def _column(at: int) -> str:
    letters = ""
    at += 1
    while at:
        at, rest = divmod(at - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
