"""Office files, made part by part, so that a test can say exactly what is in one."""

import datetime
import io
import struct
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from reading.tests.factories_mail import compound_file

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
_EPOCH = datetime.date(1899, 12, 30)

Parts = Mapping[str, str]


def docx(
    *blocks: str, body: str = "", parts: Parts | None = None, core: Parts | None = None
) -> bytes:
    """A Word document. A block is a paragraph, or a heading if it begins with `# ` to `###### `.

    `body` is raw XML behind them. `parts` are further ones by kind, such as `footnotes`.
    """
    content = "".join(map(_word_block, blocks)) + body
    styles = {"styles": f"<w:styles {NAMES}>{WORD_STYLES}</w:styles>"}
    main = f"<w:document {NAMES}><w:body>{content}<w:sectPr/></w:body></w:document>"
    return _package("word/document.xml", main, styles | dict(parts or {}), core)


def paragraph(text: str, *, style: str = "", properties: str = "") -> str:
    """XML of a Word paragraph."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{properties}</w:pPr>{run(text)}</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def table(*rows: Sequence[str]) -> str:
    """XML of a Word table; a cell is text, or XML if it begins with `<`."""
    return f"<w:tbl>{''.join(map(_word_row, rows))}</w:tbl>"


def pptx(
    *slides: Sequence[str],
    notes: Mapping[int, str] | None = None,
    hidden: Iterable[int] = (),
    shapes: str = "",
    parts: Parts | None = None,
    core: Parts | None = None,
) -> bytes:
    """A deck. A slide is its title and its bullets; `notes` and `hidden` count from 1.

    `shapes` is raw XML on every slide; `parts` are what slides refer to, by kind.
    """
    members: dict[str, str] = {}
    ids = []
    for number, lines in enumerate(slides, start=1):
        name = f"ppt/slides/slide{number}.xml"
        show = ' show="0"' if number in set(hidden) else ""
        members[name] = f"<p:sld {NAMES}{show}>{_tree(_slide_shapes(lines) + shapes)}</p:sld>"
        related = {kind: f"../extra/{kind}.xml" for kind in parts or {}}
        if notes and number in notes:
            note = f"ppt/notesSlides/notesSlide{number}.xml"
            members[note] = f"<p:notes {NAMES}>{_tree(_shape('body', [notes[number]]))}</p:notes>"
            related["notesSlide"] = f"../notesSlides/notesSlide{number}.xml"
        members[_relations_of(name)] = _relations(related)
        ids.append(f'<p:sldId id="{255 + number}" r:id="rId{number}"/>')
    members |= {f"ppt/extra/{kind}.xml": content for kind, content in (parts or {}).items()}
    links = {f"slides/slide{number}.xml": "slide" for number in range(1, len(slides) + 1)}
    main = f"<p:presentation {NAMES}><p:sldIdLst>{''.join(ids)}</p:sldIdLst></p:presentation>"
    members[_relations_of("ppt/presentation.xml")] = _relations_by_target(links)
    return _package("ppt/presentation.xml", main, {}, core, members)


def xlsx(sheets: Mapping[str, Iterable[Sequence[object]]], *, merged: Sequence[str] = (),
         states: Parts | None = None, core: Parts | None = None, formats: Sequence[str] = (),
         ) -> bytes:  # fmt: skip
    """A workbook of inline texts, numbers, booleans and dates; None is no cell.

    A pair is a number and the place of its format in `formats`; a text that begins with `<` is
    what follows the place in the XML of a cell. `merged` areas such as `A1:A3` are of every
    sheet. A state is `hidden` or `veryHidden`.
    """
    members = {}
    listed = []
    for number, (name, rows) in enumerate(sheets.items(), start=1):
        members[f"xl/worksheets/sheet{number}.xml"] = sheet_xml(rows, merged=merged)
        state = (states or {}).get(name, "visible")
        listed.append(
            f'<sheet name={quoteattr(name)} sheetId="{number}" state="{state}" r:id="rId{number}"/>'
        )
    members["xl/styles.xml"] = _excel_styles(formats)
    links = {f"worksheets/sheet{number}.xml": "worksheet" for number in range(1, len(sheets) + 1)}
    members[_relations_of("xl/workbook.xml")] = _relations_by_target(
        links | {"styles.xml": "styles"}
    )
    main = f"<workbook {_EXCEL} {NAMES}><sheets>{''.join(listed)}</sheets></workbook>"
    return _package("xl/workbook.xml", main, {}, core, members)


def sheet_xml(rows: Iterable[Sequence[object]], *, merged: Sequence[str] = ()) -> str:
    """A worksheet's part; a row that is empty is not written."""
    written = (_excel_row(number, row) for number, row in enumerate(rows, start=1) if row)
    areas = "".join(f'<mergeCell ref="{area}"/>' for area in merged)
    return (
        f'<worksheet {_EXCEL}><dimension ref="A1:XFD1048576"/>'
        f"<sheetData>{''.join(written)}</sheetData>"
        f"{f'<mergeCells>{areas}</mergeCells>' if areas else ''}</worksheet>"
    )


def zipped(members: Mapping[str, str]) -> bytes:
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


def encrypted_office() -> bytes:
    """What Office writes under a password: an OLE container with the encrypted package in it."""
    entry = "EncryptedPackage".encode("utf-16-le").ljust(64, b"\0")
    return OLE + b"\0" * 504 + entry + b"\0" * 448


def xls(sheets: Mapping[str, Iterable[Sequence[object]]], *, hidden: Sequence[str] = ()) -> bytes:
    """A workbook of Excel 97 (BIFF8) with texts and numbers."""

    def record(kind: int, data: bytes = b"") -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def begin(kind: int) -> bytes:
        return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 0, 0, 0))

    contents = []
    for rows in sheets.values():
        cells = b""
        for row, values in enumerate(rows):
            for column, value in enumerate(values):
                place = struct.pack("<HHH", row, column, 0)
                if isinstance(value, str):
                    text = value.encode("utf-16-le")
                    cells += record(0x0204, place + struct.pack("<HB", len(value), 1) + text)
                elif isinstance(value, int | float):
                    cells += record(0x0203, place + struct.pack("<d", value))
        contents.append(begin(0x0010) + cells + record(0x000A))
    names = [name.encode("utf-16-le") for name in sheets]
    at = len(begin(5)) + sum(12 + len(name) for name in names) + len(record(0x000A))
    index = b""
    for title, name, content in zip(sheets, names, contents, strict=True):
        about = struct.pack("<IBBBB", at, 2 * (title in hidden), 0, len(title), 1)
        index += record(0x0085, about + name)
        at += len(content)
    stream = begin(5) + index + record(0x000A) + b"".join(contents)
    return compound_file([("Workbook", stream.ljust(8192, b"\0"))])


def old_office() -> bytes:
    """The container of .doc, .xls and .ppt."""
    return OLE + b"\0" * 504 + "WordDocument".encode("utf-16-le").ljust(512, b"\0")


_EXCEL = f'xmlns="{_SCHEMAS}/spreadsheetml/2006/main"'


def _package(main_name: str, main: str, parts: Parts, core: Parts | None = None,
             members: Parts | None = None) -> bytes:  # fmt: skip
    folder = main_name.rpartition("/")[0]
    written = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": (
            f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="rId1" Type="{_RELATIONS}/officeDocument" Target="{main_name}"/>'
            f'<Relationship Id="rId2" Type="{_PACKAGE}/relationships/metadata/core-properties" '
            'Target="docProps/core.xml"/></Relationships>'
        ),
        main_name: main,
        "docProps/core.xml": _core(core or {}),
    }
    if parts:
        written[_relations_of(main_name)] = _relations({kind: _file(kind) for kind in parts})
    written |= {f"{folder}/{_file(kind)}": content for kind, content in parts.items()}
    return zipped(written | dict(members or {}))


def _file(kind: str) -> str:
    return kind if "." in kind else f"{kind}.xml"


def _writer(buffer: io.BytesIO) -> zipfile.ZipFile:
    return zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)


def _core(values: Parts) -> str:
    """`title`, `creator`, `language` and so on; `created` and `modified` are dates."""
    dates = {"created", "modified"}
    fields = (
        f"<{'dcterms' if name in dates else 'dc'}:{name}>{escape(text)}"
        f"</{'dcterms' if name in dates else 'dc'}:{name}>"
        for name, text in values.items()
    )
    return (
        f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"{''.join(fields)}</cp:coreProperties>"
    )


def _relations_of(part: str) -> str:
    folder, _, name = part.rpartition("/")
    return f"{folder}/_rels/{name}.rels"


def _relations(targets: Parts) -> str:
    """By kind, which serves as the id; digits at the end tell parts of one kind apart."""
    links = (
        f'<Relationship Id="{kind}" Type="{_RELATIONS}/{kind.rstrip("0123456789")}" '
        f'Target="{target}"/>'
        for kind, target in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(links)}</Relationships>'


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


def _word_row(cells: Sequence[str]) -> str:
    written = (cell if cell.startswith("<") else paragraph(cell) for cell in cells)
    return f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in written)}</w:tr>"


def _tree(shapes: str) -> str:
    return f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"


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
        case bool():
            content = f' t="b"><v>{int(value)}</v>'
        case int() | float():
            content = f"><v>{value}</v>"
        case (number, int() as style):
            content = f' s="{style + 2}"><v>{number}</v>'
        case datetime.date():
            content = f' s="1"><v>{(value - _EPOCH).days}</v>'
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
