"""HTML: the main content as Markdown, with the page's title, language and metadata. Begin with
`parse_html`; `main_content` drops navigation and banners."""

import re

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from reading.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from reading.parsers.markdown_writer import (
    BLOCK_TAGS,
    BOILERPLATE_ROLES,
    CODE_TAGS,
    HEADING_TAGS,
    LAYOUT_CELL_TAGS,
    LIST_TAGS,
    NON_TEXT_TAGS,
    MarkdownWriter,
    element_text,
)
from reading.parsers.normalise import (
    decode_as,
    decode_text,
    json_safe,
    language_code,
    readable_title,
)
from reading.parsers.table_writer import joined_names

_CODE_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source)-([\w+#-]{1,20})")


def pipe_table(table: HtmlElement) -> list[str] | None:
    """The lines of a Markdown table; None if the table is only layout (nested, one column, blocks
    in cells)."""
    if any(node is not table for node in table.iter(*LAYOUT_CELL_TAGS)):
        return None
    rows = [[cell.replace("|", "\\|") for cell in row] for row in _table_rows(table)]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    if width < 2 or len(rows) < 2:
        return None
    lines = [_pipe_row(row + [""] * (width - len(row))) for row in rows]
    lines.insert(1, _pipe_row(["---"] * width))
    caption = table.find("caption")
    return lines if caption is None else [element_text(caption), "", *lines]


#: Columns and rows that a cell may cover, and characters of a text that is said in each of them.
_MAX_SPAN, _MAX_REPEATED = 50, 100
#: Cells of a table, after which none covers others.
_MAX_CELLS = 100_000


def _table_rows(table: HtmlElement) -> list[list[str]]:
    """The cells' texts. A name over several columns is the name of each, before that which stands
    below it; a text beside several rows is said in each of them."""
    rows: list[list[str]] = []
    names = count = 0
    #: By column, how many more rows a text is for.
    below: dict[int, tuple[int, str]] = {}
    for row in table.iter("tr"):
        cells: list[str] = []
        is_names = row.getparent().tag == "thead" or next(row.iter("td"), None) is None
        for cell in row.iter("th", "td"):
            _fill_from_above(cells, below)
            text = element_text(cell)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan") - 1
            if count + len(cells) > _MAX_CELLS:
                across, down = 1, 0
            if down and len(text) <= _MAX_REPEATED:
                below |= {
                    len(cells) + at: (down, text if is_names or not at else "")
                    for at in range(across)
                }
            cells += [text, *[text if is_names else ""] * (across - 1)]
        _fill_from_above(cells, below)
        rows.append(cells)
        count += len(cells)
        names += is_names and names == len(rows) - 1
    if 1 < names < len(rows):
        joined = rows[0]
        for row in rows[1:names]:
            joined = joined_names(joined, row)
        rows[:names] = [joined]
    return rows


def _fill_from_above(cells: list[str], below: dict[int, tuple[int, str]]) -> None:
    """Add what cells of former rows say at this place."""
    while (found := below.get(len(cells))) is not None:
        left, text = found
        if left == 1:
            del below[len(cells)]
        else:
            below[len(cells)] = left - 1, text
        cells.append(text)


def _span(cell: HtmlElement, name: str) -> int:
    value = str(cell.get(name, "1")).strip()[:6]
    return min(max(int(value), 1), _MAX_SPAN) if value.isascii() and value.isdigit() else 1


def _pipe_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def to_markdown(root: HtmlElement) -> tuple[str, tuple[Heading, ...]]:
    """The text of `root` and its headings with their offsets in that text."""
    walk = _MarkdownWalk()
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            walk.end(element)
            if element is not root:
                walk.out.write(element.tail or "")
        elif walk.write_as_unit(element):
            walker.skip_subtree()
        else:
            walk.start(element)
    return walk.out.finish()


class _MarkdownWalk:
    def __init__(self) -> None:
        self.out = MarkdownWriter()
        self.counters: list[int | None] = []

    def write_as_unit(self, element: HtmlElement) -> bool:
        """Write an element that is treated as one; False if its children are to be walked."""
        match element.tag:
            case tag if tag in HEADING_TAGS:
                self.out.heading(int(tag[1]), element_text(element))
            case "pre":
                parts: list[str] = []
                for event, node in etree.iterwalk(element, events=("start", "end")):
                    if event == "start":
                        parts.append("\n" if node.tag == "br" else node.text or "")
                    elif node is not element:
                        parts.append(node.tail or "")
                marked = (element, *element.findall("code"))
                language = _CODE_LANGUAGE.search(" ".join(node.get("class", "") for node in marked))
                self.out.code("".join(parts), language=language[1] if language else "")
            case tag if tag in CODE_TAGS:
                text = element_text(element)
                self.out.write(f"`{text}`" if text and "`" not in text else text)
            case "table":
                lines = pipe_table(element)
                self.out.lines(lines or [])
                return lines is not None
            case _:
                return False
        return True

    def start(self, element: HtmlElement) -> None:
        if element.tag in BLOCK_TAGS:
            self.out.end_block()
        match element.tag:
            case "br":
                self.out.end_line()
            case "img":
                self.out.write(element.get("alt", ""))
            case "blockquote":
                self.out.open("> ", "> ")
            case tag if tag in LIST_TAGS:
                start = element.get("start", "1") if tag == "ol" else ""
                first = int(start) if re.fullmatch(r"[0-9]{1,8}", start) else 1
                self.counters.append(first if tag == "ol" else None)
                self.out.open_list()
            case "li":
                number = self.counters[-1] if self.counters else None
                if number is not None:
                    self.counters[-1] = number + 1
                marker = "- " if number is None else f"{number}. "
                self.out.open(marker, " " * len(marker))
        self.out.write(element.text or "")

    def end(self, element: HtmlElement) -> None:
        if element.tag not in BLOCK_TAGS:
            return
        self.out.end_block()
        if element.tag in {"blockquote", "li"}:
            self.out.close()
        elif element.tag in LIST_TAGS:
            self.counters.pop()
            self.out.close_list()


_DOCUMENT = frozenset({"main", "article"})
_HIDDEN_XPATH = "//body//*[@hidden or @aria-hidden or @style]"
_INVISIBLE_STYLE = re.compile("display:none|visibility:hidden")
_MAIN_XPATH = "(//main | //*[@role='main'])[1]"


def main_content(body: HtmlElement) -> HtmlElement:
    """The element with the document, without the boilerplate around it.

    Hidden elements must be removed before. A page that consists of boilerplate only is kept.
    """
    total = _word_count(body)
    articles = body.xpath(".//article")
    for candidate in [*body.xpath(_MAIN_XPATH), *(articles if len(articles) == 1 else [])]:
        # A hollow <main> that a script was meant to fill holds less than a fifth.
        if _word_count(candidate) * 5 >= total > 0:
            body = candidate
            break
    # The outermost boilerplate elements, found in one walk. An article's own header and footer
    # belong to it; a header with the title is no banner.
    boilerplate: list[HtmlElement] = []
    articles = int(body.tag in _DOCUMENT)
    walker = etree.iterwalk(body, events=("start", "end"))
    for event, node in walker:
        if node is not body and node.tag in _DOCUMENT:
            articles += 1 if event == "start" else -1
        elif (event == "start" and node is not body) and (
            node.get("role") in BOILERPLATE_ROLES
            or node.tag in {"nav", "aside"}
            or (node.tag in {"header", "footer"} and not articles and node.find(".//h1") is None)
        ):
            walker.skip_subtree()
            boilerplate.append(node)
    _drop_unless_all(body, boilerplate)
    return body


def _word_count(node: HtmlElement) -> int:
    return sum(len(text.split()) for text in node.itertext())


def _drop_unless_all(root: HtmlElement, nodes: list[HtmlElement]) -> None:
    if _word_count(root) > sum(_word_count(node) for node in nodes):
        _drop_elements(nodes)


def _drop_elements(nodes: list[HtmlElement]) -> None:
    for node in nodes:
        if node.getparent() is not None:
            node.drop_tree()


_DECLARED_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.I)
#: Names of <meta> elements, in the order of preference, for each key of the metadata.
_META_NAMES = {
    "description": ("description", "og:description", "dc.description"),
    "author": ("author", "article:author", "dc.creator"),
    "date": ("article:published_time", "date", "dc.date", "dcterms.date", "article:modified_time"),
    "keywords": ("keywords",),
    "site": ("og:site_name",),
}


#: Characters that a tree may hold but not be given.
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_html(
    data: bytes,
    *,
    name: str,
    limits: Limits = DEFAULT_LIMITS,
    keep_boilerplate: bool = False,
) -> ParsedDocument:
    """Web pages, saved or fetched, with markup as broken as browsers accept.

    `keep_boilerplate`: there is no navigation around the text, as in a book, so nothing is left
    out.
    """
    root = _parse_tree(_decode_html(data))
    titles = (root.find("head/title"), root.find(".//h1"))
    title = next(filter(None, (element_text(node) for node in titles if node is not None)), "")
    labelled: dict[str, str] = {}
    for node in root.iter("meta"):
        label = (node.get("name") or node.get("property") or "").lower()
        if content := " ".join(node.get("content", "").split()):
            labelled.setdefault(label, content)
    metadata = {
        key: next((labelled[label] for label in labels if label in labelled), "")
        for key, labels in _META_NAMES.items()
    }
    # Hidden text is kept where a page hides all of its text until a script has run.
    _drop_elements(list(root.iter(*NON_TEXT_TAGS)))
    hidden = [
        node
        for node in root.xpath(_HIDDEN_XPATH)
        if node.get("hidden") is not None
        or node.get("aria-hidden") == "true"
        or _INVISIBLE_STYLE.search("".join(node.get("style", "").lower().split()))
    ]
    _drop_unless_all(root, hidden)
    body = root.find("body")
    body = root if body is None else body
    text, headings = to_markdown(body if keep_boilerplate else main_content(body))
    if not text.strip():
        raise ParseError(
            "no_text",
            "The page has no text; a script may load it. Save it from the browser as "
            "a complete page.",
        )
    return ParsedDocument(
        text=text,
        media_type="text/html",
        title=title or readable_title(name),
        rendering="markdown",
        headings=headings,
        metadata=json_safe({key: value for key, value in metadata.items() if value}),
        language=language_code(root.get("lang")),
    )


def _decode_html(data: bytes) -> str:
    declared = _DECLARED_CHARSET.search(data[:4096])
    if declared and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return decode_as(data, declared[1].decode("ascii", "replace"))
    return decode_text(data)


def _parse_tree(text: str) -> HtmlElement:
    if not text.strip():
        raise ParseError("empty", "The file has no text. Check that it was saved.")
    parser = HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        root = document_fromstring(_INVALID_XML.sub(" ", text).encode(), parser=parser)
    except etree.ParserError as error:
        raise ParseError("no_text", "The page has no text. Check that it was saved.") from error
    # libxml2 drops deeper elements and reports it only in its log.
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise ParseError(
            "malformed",
            "The elements are nested too deeply. Save the page as plain text.",
        )
    return root
