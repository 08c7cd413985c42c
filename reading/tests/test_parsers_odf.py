"""OpenDocument files: texts, spreadsheets and presentations read as those of Office are."""

import pytest

from reading.location import location
from reading.parsers import Heading, Page, ParseError, parse
from reading.parsers.base import Limits
from reading.parsers.odf import parse_odf
from reading.tests.factories_books import odf
from reading.tests.factories_office import changed

FRAME = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"


def test_a_text_with_headings_lists_tables_notes_and_frames() -> None:
    styles = (
        '<style:style style:name="P1" style:parent-style-name="Title"/>'
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1"/>'
        "</text:list-style>"
    )
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:p text:style-name="P1">Handbook</text:p>'
        '<text:h text:outline-level="2">Costs</text:h>'
        '<text:p>Bring<text:s text:c="3"/>all <text:span>receipts</text:span><text:line-break/>now'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>In paper.</text:p></text:note-body></text:note>."
        f"{FRAME.format('', 'boxed')}</text:p>"
        '<text:list text:style-name="L1"><text:list-item><text:p>one</text:p>'
        "<text:list><text:list-item><text:p>deep</text:p></text:list-item></text:list></text:list-item><text:list-item>"
        "<text:p>two</text:p></text:list-item></text:list>"
        "<table:table><table:table-column/><table:table-header-rows><table:table-row>"
        f"{cells.format('Land')}{cells.format('City')}</table:table-row></table:table-header-rows>"
        '<table:table-row><table:table-cell table:number-rows-spanned="2"><text:p>BW</text:p>'
        f"</table:table-cell>{cells.format('Ulm')}</table:table-row><table:table-row>"
        f"<table:covered-table-cell/>{cells.format('Aalen')}</table:table-row></table:table>"
        "<text:section><text:p>In a section.<office:annotation><text:p>remark</text:p>"
        "</office:annotation></text:p></text:section>"
    )
    core = {"title": "Draft.odt", "creator": "Ada", "language": "en-GB"}
    document = parse(odf("text", body, styles=styles, core=core), name="a.odt")
    assert document.text == (
        "# Handbook\n\n## Costs\n\nBring all receipts\nnow[1].\n\n[1] In paper.\n\nboxed\n\n"
        "1. one\n   - deep\n2. two\n\n| Land | City |\n| - | - |\n| BW | Ulm |\n| BW | Aalen |\n\n"
        "In a section.\n\nComment: remark\n"
    )
    assert document.headings == (Heading(0, 1, "Handbook"), Heading(12, 2, "Costs"))
    assert (document.title, document.language) == ("Handbook", "en")
    assert document.metadata["author"] == "Ada"
    assert document.media_type == "application/vnd.oasis.opendocument.text"


def test_a_spreadsheet_declares_a_million_rows_and_costs_what_is_there() -> None:
    body = (
        '<table:table table:name="Sales"><table:table-row><table:table-cell><text:p>Month</text:p>'
        "</table:table-cell><table:table-cell><text:p>Sum</text:p></table:table-cell>"
        '<table:table-cell table:number-columns-repeated="16382"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="2"><table:table-cell '
        'office:value-type="date" office:date-value="2024-03-01T00:00:00"><text:p>March</text:p>'
        '</table:table-cell><table:table-cell office:value-type="float" office:value="1234.5">'
        "<text:p>1,234.50</text:p></table:table-cell></table:table-row>"
        '<table:table-row table:number-rows-repeated="1048573"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row></table:table>'
        '<table:table table:name="Empty"><table:table-row/></table:table>'
    )
    document = parse(odf("spreadsheet", body), name="a.ods")
    row = "| 2024-03-01 | 1234.5 |\n"
    assert document.text == f"# Sales\n\n| Month | Sum |\n| - | - |\n{row}{row}"
    assert document.metadata["tables"] == [
        {"sheet": "Sales", "rows": "2-3", "columns": ["Month", "Sum"], "types": ["date", "number"]}
    ]
    second = document.text.rindex(row)
    assert [page.number for page in document.pages if page.offset <= second][-1] == 3
    assert location(document.media_type, 3, heading_path=["Sales"]) == "Sales!A3"


def test_filled_cells_that_are_repeated_without_end_are_refused() -> None:
    repeated = 'table:number-columns-repeated="1000"'
    cell = f"<table:table-cell {repeated}><text:p>x</text:p></table:table-cell>"
    row = f'<table:table-row table:number-rows-repeated="1000">{cell}</table:table-row>'
    data = odf("spreadsheet", f'<table:table table:name="S">{row * 1000}</table:table>')
    with pytest.raises(ParseError, match="10,000 characters") as caught:
        parse_odf(data, name="a.ods", limits=Limits(max_characters=10_000))
    assert caught.value.code == "too_large"


def test_a_presentation_has_a_page_for_each_slide() -> None:
    title = FRAME.format(' presentation:class="title"', "Costs")
    number = FRAME.format(' presentation:class="page-number"', "7")
    notes = f"<presentation:notes>{FRAME.format('', 'Smile.')}</presentation:notes>"
    body = (
        f"<draw:page>{title}{FRAME.format('', 'Rent')}{number}{notes}</draw:page>"
        f"<draw:page>{FRAME.format('', 'Untitled')}</draw:page>"
    )
    document = parse(odf("presentation", body), name="a.odp")
    assert document.text == "## Costs\n\nRent\n\n> Smile.\n\n## Slide 2\n\nUntitled\n"
    assert document.pages == (Page(0, 1), Page(document.text.index("## Slide 2"), 2))


@pytest.mark.parametrize("kind", ["text", "spreadsheet", "presentation"])
def test_a_file_without_text_is_refused(kind: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(odf(kind, "<draw:page/><table:table/>"), name="a")
    assert caught.value.code == "no_text"


def test_a_file_with_a_password_is_refused() -> None:
    manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    data = changed(odf("text", "<text:p>x</text:p>"), {"META-INF/manifest.xml": manifest})
    with pytest.raises(ParseError, match="remove the password") as caught:
        parse(data, name="a.odt")
    assert caught.value.code == "encrypted"


def test_templates_are_read_and_drawings_are_not() -> None:
    data = odf("text", "<text:p>x</text:p>")
    mark = "application/vnd.oasis.opendocument."
    assert parse(changed(data, {"mimetype": f"{mark}text-template"}), name="a.ott").text == "x\n"
    with pytest.raises(ParseError, match="OpenDocument") as caught:
        parse(changed(data, {"mimetype": f"{mark}graphics"}), name="a.odg")
    assert caught.value.code == "unsupported"
    folder = parse(changed(data, {"mimetype": "text/html"}), name="a.zip")
    assert folder.media_type == "application/zip"
