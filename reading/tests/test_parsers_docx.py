"""Word files: nothing a reader sees is lost, nothing that was deleted comes back."""

import pytest

from reading.parsers import Heading, ParsedDocument, ParseError, parse
from reading.tests.factories_office import NAMES, changed, docx, paragraph, run, table


def read(*blocks: str, **options: object) -> ParsedDocument:
    document = parse(docx(*blocks, **options), name="a.docx")  # type: ignore[arg-type]
    for heading in document.headings:
        marks = "#" * heading.level
        assert document.text.startswith(f"{marks} {heading.title}\n", heading.offset)
    return document


def text_of(body: str, **parts: str) -> str:
    return read(body=body, parts=parts).text


def in_run(content: str) -> str:
    return f"<w:p><w:r>{content}</w:r></w:p>"


def test_paragraphs_tables_and_headings_come_in_the_order_of_the_document() -> None:
    document = read(
        "# Travel",
        "Before the table.",
        body=table(["City", "Days"], ["Ulm", "2"]) + paragraph("After it."),
    )
    assert document.text == (
        "# Travel\n\nBefore the table.\n\n| City | Days |\n| - | - |\n| Ulm | 2 |\n\nAfter it.\n"
    )
    assert document.headings == (Heading(0, 1, "Travel"),)
    assert document.rendering == "markdown"


def test_properties_become_metadata() -> None:
    document = read(
        "Text",
        core={
            "title": "Travel rules",
            "creator": "Ada",
            "language": "de-AT",
            "created": "2024-01-02T03:04:05Z",
        },
    )
    assert (document.title, document.language) == ("Travel rules", "de")
    assert document.metadata["author"] == "Ada"
    assert document.metadata["created_at"] == "2024-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("style_id", "name", "level"),
    [
        ("Heading1", "heading 1", 1),
        ("berschrift2", "heading 2", 2),
        ("P12", "Überschrift 3", 3),
        ("P12", "Titre 2", 2),
        ("P12", "Заголовок 1", 1),
        ("P12", "標題 1", 1),
        ("Titel", "Title", 1),
        ("P12", "heading 9", 6),
    ],
)
def test_headings_are_known_by_the_name_of_their_style(
    style_id: str, name: str, level: int
) -> None:
    styles = (
        f'<w:styles {NAMES}><w:style w:type="paragraph" w:styleId="{style_id}">'
        f'<w:name w:val="{name}"/></w:style></w:styles>'
    )
    document = read("x", body=paragraph("Costs", style=style_id), parts={"styles": styles})
    assert document.headings == (Heading(3, level, "Costs"),)


def test_headings_are_known_by_outline_level_base_style_and_bare_id() -> None:
    styles = (
        f'<w:styles {NAMES}><w:style w:styleId="Mine"><w:name w:val="Chapter"/>'
        '<w:basedOn w:val="Base"/></w:style><w:style w:styleId="Base"><w:name w:val="Any"/>'
        '<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style><w:style w:styleId="Loop">'
        '<w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style><w:style w:styleId="Head">'
        '<w:name w:val="TOC Heading"/><w:basedOn w:val="Base"/><w:pPr><w:outlineLvl w:val="9"/>'
        "</w:pPr></w:style></w:styles>"
    )
    body = (
        paragraph("By base", style="Mine")
        + paragraph("By paragraph", properties='<w:outlineLvl w:val="0"/>')
        + paragraph("By id", style="Heading3")
        + paragraph("Round and round", style="Loop")
        + paragraph("Contents", style="Head")
    )
    document = read(body=body, parts={"styles": styles})
    found = [(heading.level, heading.title) for heading in document.headings]
    assert found == [(2, "By base"), (1, "By paragraph"), (3, "By id")]


def test_a_whole_paragraph_in_the_style_of_a_heading_is_none() -> None:
    long = "words " * 60
    document = read(f"# {long}")
    assert document.headings == ()
    assert document.text == f"{long.strip()}\n"


def test_the_paragraph_with_the_style_of_a_title_is_the_title() -> None:
    assert read(body=paragraph("Leaflet", style="Title"), core={"title": "Old"}).title == "Leaflet"
    assert read("x", core={"title": "draft.docx"}).title == "A"


def test_tracked_changes_show_what_was_inserted_and_not_what_was_deleted() -> None:
    text = text_of(
        f"<w:p>{run('We ')}<w:del>{run('never ')}<w:r><w:delText>gone</w:delText></w:r></w:del>"
        f"<w:ins>{run('always ')}</w:ins>{run('pay')}<w:moveFrom>{run(' moved')}</w:moveFrom></w:p>"
        f"<w:moveTo>{paragraph('moved here')}</w:moveTo>"
        f"<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc>{paragraph('lost row')}</w:tc></w:tr>"
        f"<w:tr><w:tc>{paragraph('kept row')}</w:tc></w:tr></w:tbl>"
    )
    assert text == "We always pay\n\nmoved here\n\nkept row\n"


def test_what_stands_inside_of_links_controls_fields_and_tags_is_kept() -> None:
    control = "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>"
    row = f"<w:tr>{control.format(_cell('x'))}{_cell('y')}</w:tr>"
    text = text_of(
        "<w:p>"
        f'<w:hyperlink r:id="rId9">{run("link ")}</w:hyperlink>'
        f'<w:fldSimple w:instr="REF x">{run("field ")}</w:fldSimple>'
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK "x"</w:instrText>'
        f'</w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("result ")}'
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        f"{control.format(run('control '))}<w:smartTag>{run('tag ')}</w:smartTag>"
        f"<w:customXml>{run('xml ')}</w:customXml><w:bdo>{run('bdo')}</w:bdo></w:p>"
        + control.format(paragraph("block control") + table(["a", "b"], ["c", "d"]))
        + f"<w:tbl>{control.format(row)}"
        f"<w:tr>{_cell(control.format(paragraph('deep')))}{_cell('z')}</w:tr></w:tbl>"
    )
    assert text.startswith("link field result control tag xml bdo\n\nblock control\n\n| a | b |")
    assert text.endswith("| x | y |\n| - | - |\n| deep | z |\n")


def _cell(content: str) -> str:
    return f"<w:tc>{content if content.startswith('<') else paragraph(content)}</w:tc>"


def test_what_nobody_sees_is_left_out() -> None:
    text = text_of(
        "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>seen</w:t></w:r></w:p>'
        "<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>"
        f"{paragraph('Click here to enter text.')}</w:sdtContent></w:sdt>"
        f"{paragraph('Chapter ... 7', style='TOC1')}"
    )
    assert text == "seen\n"


def test_comments_are_counted_and_follow_their_paragraphs() -> None:
    comments = (
        f'<w:comments {NAMES}><w:comment w:id="0">{paragraph("Really?")}</w:comment></w:comments>'
    )
    body = paragraph("Text") + paragraph("More")
    body = body.replace("Text</w:t></w:r>", 'Text</w:t></w:r><w:commentReference w:id="0"/>')
    document = read(body=body, parts={"comments": comments})
    assert document.text == "Text\n\nComment: Really?\n\nMore\n"
    assert document.metadata["comments"] == 1


def test_characters_that_word_writes_as_elements() -> None:
    text = text_of(
        in_run("<w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:cr/><w:t>d</w:t>")
        + in_run('<w:t>before</w:t><w:br w:type="page"/><w:t>after</w:t>')
        + in_run("<w:t>e</w:t><w:noBreakHyphen/><w:t>mail</w:t>")
        + in_run("<w:t>op</w:t><w:softHyphen/><w:t>tion in\u00adter</w:t>")
        + in_run('<w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Symbol" w:char="F0A3"/>'
                 '<w:sym w:font="Wingdings" w:char="F04A"/><w:sym w:font="Arial" w:char="00E9"/>')
        + "<w:p><m:oMath><m:r><m:t>x=2</m:t></m:r></m:oMath></w:p>"
        + in_run(f"<w:ruby><w:rt>{run('k')}</w:rt><w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby>")
    )  # fmt: skip
    assert text == "a b\nc\nd\n\nbefore\nafter\n\ne-mail\n\noption inter\n\nα≤é\n\nx=2\n\n漢字\n"


@pytest.mark.parametrize(
    "text", ["“smart” ‘quotes’ – dash…", "שלום עולם", "مرحبا", "日本語", "a < b & c"]
)
def test_any_script_and_punctuation_comes_as_it_is(text: str) -> None:
    assert read(text).text == f"{text}\n"


def test_foot_and_end_notes_follow_the_paragraph_that_refers_to_them() -> None:
    note = (
        '<w:footnotes {0}><w:footnote w:id="-1"><w:p/></w:footnote>'
        '<w:footnote w:id="2">{1}</w:footnote></w:footnotes>'
    )
    text = text_of(
        f'<w:p>{run("Proven")}<w:r><w:footnoteReference w:id="2"/></w:r>{run(".")}</w:p>'
        + table(["a", "b"], ["c", '<w:p><w:r><w:endnoteReference w:id="2"/></w:r></w:p>'])
        + paragraph("Next."),
        footnotes=note.format(NAMES, paragraph("By Smith.")),
        endnotes=note.format(NAMES, paragraph("By Jones.")).replace("footnote", "endnote"),
    )
    assert text == (
        "Proven[1].\n\n[1] By Smith.\n\n| a | b |\n| - | - |\n| c | [2] |\n\n"
        "[2] By Jones.\n\nNext.\n"
    )


def levels(*kinds: tuple[str, str]) -> str:
    return "".join(
        f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for level, (kind, text) in enumerate(kinds)
    )


NUMBERING = (
    f'<w:numbering {NAMES}><w:abstractNum w:abstractNumId="0">'
    f"{levels(('decimal', '%1.'), ('lowerLetter', '(%2)'), ('upperRoman', '%1.%3'))}"
    f'</w:abstractNum><w:abstractNum w:abstractNumId="1">{levels(("bullet", "•"))}</w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0">'
    '<w:startOverride w:val="1"/></w:lvlOverride></w:num></w:numbering>'
)


def item(text: str, list_id: int, level: int = 0, style: str = "") -> str:
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'
    return paragraph(text, style=style, properties=numbered)


def test_lists_keep_their_levels_and_the_numbers_that_word_shows() -> None:
    text = text_of(
        item("one", 1) + item("first", 1, 1) + item("second", 1, 1) + item("deep", 1, 2)
        + item("two", 1) + item("first again", 1, 1) + paragraph("Between.")
        + item("three", 1) + item("anew", 3) + item("and on", 3) + item("point", 2)
        + item("no list", 0) + item("unknown", 99),
        numbering=NUMBERING,
    )  # fmt: skip
    assert text == (
        "1. one\n   - (a) first\n   - (b) second\n     - 1.I deep\n2. two\n   - (a) first again\n\n"
        "Between.\n\n3. three\n1. anew\n2. and on\n- point\n\nno list\n\nunknown\n"
    )


def test_a_name_over_several_columns_is_the_name_of_each() -> None:
    def spanning(text: str, columns: int) -> str:
        return f'<w:tc><w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>{paragraph(text)}</w:tc>'

    def table_of(*rows: str) -> str:
        return text_of(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>")

    assert table_of(
        _cell("Region") + spanning("2025", 2) + spanning("2026", 2),
        _cell("") + _cell("Plan") + _cell("Actual") + _cell("Plan") + _cell("Actual"),
        _cell("North") + _cell("1") + _cell("2") + _cell("3") + _cell("4"),
    ) == (
        "| Region | 2025 Plan | 2025 Actual | 2026 Plan | 2026 Actual |\n"
        "| - | - | - | - | - |\n| North | 1 | 2 | 3 | 4 |\n"
    )
    # What stands below one row of names is no second row of them.
    assert table_of(
        _cell("Id") + spanning("Name", 2),
        _cell("A") + _cell("Ada") + _cell("Lovelace"),
        _cell("B") + _cell("Bob") + _cell("Byron"),
    ).startswith("| Id | Name | Name |\n| - | - | - |\n| A | Ada | Lovelace |")


def test_headings_keep_the_number_that_word_shows() -> None:
    body = item("Costs", 1, style="Heading1") + item("Rent", 1, 2, style="Heading2")
    titles = [heading.title for heading in read(body=body, parts={"numbering": NUMBERING}).headings]
    assert titles == ["1. Costs", "1.I Rent"]


def test_merged_cells_give_each_row_what_it_belongs_to() -> None:
    merge = "<w:tc><w:tcPr><w:vMerge{}/></w:tcPr>{}</w:tc>"
    span = f'<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{paragraph("both")}</w:tc>'
    rows = [
        _cell("Region") + _cell("Name") + _cell("Sales"),
        merge.format(' w:val="restart"', paragraph("North")) + _cell("Ada") + _cell("1"),
        merge.format("", "<w:p/>") + _cell("Bob") + _cell("2"),
        _cell("South") + span,
    ]
    text = text_of(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>")
    assert text == (
        "| Region | Name | Sales |\n| - | - | - |\n| North | Ada | 1 |\n| North | Bob | 2 |\n"
        "| South | both |  |\n"
    )


def test_a_table_that_only_puts_text_in_places_is_written_as_text() -> None:
    inner = table(["a", "b"], ["c", "d"])
    text = text_of(
        table([paragraph("Left") + paragraph("below"), paragraph("Head", style="Heading1")])
        + table(["x", "y"], [f"{inner}<w:p/>", "z"])
    )
    assert text == ("Left\n\nbelow\n\n# Head\n\nx\n\ny\n\n| a | b |\n| - | - |\n| c | d |\n\nz\n")


def test_a_long_table_repeats_its_column_names() -> None:
    rows = [[f"Person {number}", f"Street {number}"] for number in range(200)]
    text = text_of(table(["Name", "Address"], *rows))
    assert text.count("| Name | Address |") > 5
    assert all(f"| Person {number} | Street {number} |" in text for number in range(200))


def test_text_boxes_pictures_charts_and_diagrams_are_read_once() -> None:
    box = "<w:txbxContent>{}</w:txbxContent>"
    inner = (
        f"<w:p><w:r><w:drawing><wp/>{box.format(paragraph('inner box'))}</w:drawing></w:r></w:p>"
    )
    drawing = (
        f"<w:drawing><docPr descr='A red house'/>{box.format(paragraph('box') + inner)}</w:drawing>"
    )
    step = "<dgm:t><a:p><a:r><a:t>Step one</a:t></a:r></a:p></dgm:t>"
    graphics = '<dgm:relIds r:dm="diagramData"/><c:chart r:id="chart"/>'
    text = text_of(
        f"<w:p>{run('Around')}<w:r><mc:AlternateContent><mc:Choice>{drawing}</mc:Choice>"
        f"<mc:Fallback><w:pict>{box.format(paragraph('box'))}</w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>" + in_run(f"<w:drawing>{graphics}</w:drawing>"),
        diagramData=f"<dgm:dataModel {NAMES}>{step}</dgm:dataModel>",
        chart=CHART,
    )
    assert text == (
        "Around\n\nA red house\n\nbox\n\ninner box\n\n- Step one\n\nSales\n\n"
        "| Category | Berlin |\n| - | - |\n| March | 1200 |\n"
    )


def cache(kind: str, value: str) -> str:
    return f"<c:{kind}><c:pt idx='0'><c:v>{value}</c:v></c:pt></c:{kind}>"


CHART = (
    f"<c:chartSpace {NAMES}><c:chart><c:title><a:t>Sales</a:t></c:title><c:ser>"
    f"<c:tx>{cache('strCache', 'Berlin')}</c:tx><c:cat>{cache('strCache', 'March')}</c:cat>"
    f"<c:val>{cache('numCache', '1200')}</c:val></c:ser></c:chart></c:chartSpace>"
)


def test_pages_that_word_would_convert_are_read_with_their_headings() -> None:
    archive = (
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\n"
        "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
        "<h2>Archive</h2><p>caf=C3=A9</p>\n--x--\n"
    )
    parts = {
        "page.html": "<h1>Page</h1><p>Words</p>",
        "page.mht": archive,
        "page.txt": "Plain",
        "page.rtf": "{\\rtf1 nothing}",
    }
    chunks = "".join(f'<w:altChunk r:id="{name}"/>' for name in (*parts, "missing"))
    document = read("Before", body=chunks + paragraph("After"), parts=parts)
    assert document.text == ("Before\n\n# Page\n\nWords\n\n## Archive\n\ncafé\n\nPlain\n\nAfter\n")
    assert [heading.title for heading in document.headings] == ["Page", "Archive"]


def test_a_heading_that_is_alone_on_its_level_is_the_title() -> None:
    assert read("# Travel", "## Costs", "Text").title == "Travel"
    assert read("# Travel", "Text", "# Costs").title == "A"
    assert read("## Travel", "Text").title == "A"


def test_heads_and_feet_of_pages_come_once_and_without_page_numbers() -> None:
    page = '<w:fldSimple w:instr=" PAGE ">' + run("3") + "</w:fldSimple>"
    footer = f"<w:ftr {NAMES}><w:p>{run('Page ')}{page}</w:p>{paragraph('SOP-12')}</w:ftr>"
    parts = {
        "footer1": footer,
        "footer2": footer,
        "header": f"<w:hdr {NAMES}>{paragraph('ACME')}</w:hdr>",
    }
    assert read("# One", "Text", parts=parts).text == "ACME\n\nSOP-12\n\n# One\n\nText\n"


def test_the_strict_spelling_of_the_format_is_read_too() -> None:
    data = docx("# Strict", "Text")
    main = (
        '<w:document xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"><w:body>'
        + paragraph("Strict", style="Heading1") + paragraph("Text") + "</w:body></w:document>"
    )  # fmt: skip
    document = parse(changed(data, {"word/document.xml": main}), name="a.docx")
    assert document.text == "# Strict\n\nText\n"


def test_a_document_of_pictures_has_no_text() -> None:
    with pytest.raises(ParseError, match="OCR") as caught:
        read(body=in_run("<w:drawing><a:blip/></w:drawing>"))
    assert caught.value.code == "no_text"
