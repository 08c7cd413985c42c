"""The data that a chart shows, as a table."""

from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.office_xml import A, Element, integer
from documents.parsers.table_writer import table_blocks
from documents.parsers.xlsx_numbers import shown

_C = A.replace("/main}", "/chart}")
_CACHES = tuple(f"{_C}{name}" for name in ("strCache", "numCache", "strLit", "numLit", "lvl"))


def write_chart(out: MarkdownWriter, root: Element) -> None:
    """Titles, then a row for each category with the values of all series."""
    for title in root.iter(f"{_C}title"):
        out.write("".join(node.text or "" for node in title.iter(f"{A}t")))
        out.end_block()
    series = list(root.iter(f"{_C}ser"))
    names = [_name(one) for one in series]
    values = [_points(one, "val", "yVal") for one in series]
    categories = next((found for one in series if (found := _points(one, "cat", "xVal"))), {})
    places = sorted(set(categories).union(*values))
    rows = ([categories.get(at, ""), *(found.get(at, "") for found in values)] for at in places)
    for block in table_blocks(["Category", *names], rows):
        out.lines(block.split("\n"))


def _name(series: Element) -> str:
    node = series.find(f"{_C}tx")
    return "" if node is None else " ".join(value.text or "" for value in node.iter(f"{_C}v"))


def _points(series: Element, *names: str) -> dict[int, str]:
    """The values that the chart keeps of its data, by position; several levels are joined."""
    found: dict[int, str] = {}
    for node in (child for name in names for child in series.iterfind(f"{_C}{name}")):
        for cache in node.iter(*_CACHES):
            code = cache.findtext(f"{_C}formatCode")
            for point in cache.iterfind(f"{_C}pt"):
                at, text = integer(point.get("idx")), _shown(point.findtext(f"{_C}v") or "", code)
                found[at] = f"{text} {found[at]}" if at in found else text
    return found


def _shown(text: str, code: str | None) -> str:
    """Only numbers have a format."""
    try:
        return shown(float(text), code) if code else " ".join(text.split())
    except ValueError:
        return text
