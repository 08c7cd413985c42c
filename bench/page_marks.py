"""Are quotations marked at their place on the page, and nothing else? `python -m bench.page_marks`

PDFs are typeset here word by word, so that the box of each word of each sentence is known: one
and two columns, hyphens, tables, running heads, sentences that stand there several times, sentences
over a page break, and files whose content has another order than its reader."""

import argparse
import json
import random
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

import pypdfium2
from fpdf import FPDF

from documents.page_marks import Mark, place_quotation
from reading.parsers import ParsedDocument, parse
from reading.parsers.page_image import read_page_layer

Box = tuple[float, float, float, float]
WIDTH, HEIGHT, MARGIN, LEADING = 595.0, 842.0, 56.0, 14.0
_WORDS = """
    harbour quay council autumn ledger painter committee northern supply window engine
    barrel letter Müller façade señor straße office efficient agreement contract payment
    delivery warehouse inspector lantern evening river bridge document signature annual
    interest the of and under before after without between report schedule vessel cargo
    timber customs register
"""
WORDS = _WORDS.split()
REPEATED = (
    "Payment is due within thirty days of the delivery of the goods.",
    "The committee agreed without a vote.",
)


@dataclass
class Sheet:
    """A PDF as it is set: boxes of words by page, and for each quotation in order of reading its
    text and the words that it has on which page."""

    document: FPDF
    rng: random.Random
    drawn: list[tuple[int, float, float, str, bool]] = field(default_factory=list)
    quotations: list[tuple[str, list[int]]] = field(default_factory=list)
    boxes: list[tuple[int, Box]] = field(default_factory=list)
    page: int = 1

    def put(self, text: str, x: float, y: float, *, bold: bool = False) -> int:
        """Draw later; the number of the word."""
        self.drawn.append((self.page, x, y, text, bold))
        width = self.width(text, bold=bold)
        self.boxes.append((self.page, (x, y - 8, x + width, y + 2)))
        return len(self.boxes) - 1

    def width(self, text: str, *, bold: bool = False) -> float:
        """In points."""
        self.document.set_font("Helvetica", style="B" if bold else "", size=10)
        return float(self.document.get_string_width(text))

    def finished(self, *, shuffled: bool) -> bytes:
        """The bytes; `shuffled` draws lines of a page in another order."""
        pages = sorted({page for page, *_ in self.drawn})
        for page in pages:
            self.document.add_page()
            mine = [each for each in self.drawn if each[0] == page]
            if shuffled:
                lines = sorted({(round(each[1] / 260), each[2]) for each in mine})
                self.rng.shuffle(lines)
                mine = [
                    each for key in lines for each in mine if (round(each[1] / 260), each[2]) == key
                ]
            for _, x, y, text, bold in mine:
                self.document.set_font("Helvetica", style="B" if bold else "", size=10)
                self.document.text(x, y, text)
        return bytes(self.document.output())


def sentence(rng: random.Random) -> str:
    """Between 6 and 22 words, sometimes with an amount."""
    chosen = [rng.choice(WORDS) for _ in range(rng.randint(6, 22))]
    if rng.random() < 0.3:
        chosen.insert(3, f"{rng.randint(1, 999)}.{rng.randint(10, 99)}")
    return " ".join(chosen).capitalize() + "."


def typeset(
    rng: random.Random, *, columns: int, shuffled: bool, tables: bool
) -> tuple[Sheet, bytes]:
    """Three pages."""
    sheet = Sheet(FPDF(unit="pt", format=(WIDTH, HEIGHT)), rng)
    gap = 24.0
    column_width = (WIDTH - 2 * MARGIN - gap * (columns - 1)) / columns
    for page in (1, 2, 3):
        sheet.page = page
        for at, word in enumerate(["Harbour", "company", "annual", "report"]):
            sheet.put(word, MARGIN + 60 * at, 30)
    state = {"page": 1, "column": 0, "y": MARGIN + 20}

    def line_break() -> bool:
        state["y"] += LEADING
        if state["y"] > HEIGHT - MARGIN:
            state["column"] += 1
            state["y"] = MARGIN + 20
            if state["column"] == columns:
                state["column"], state["page"] = 0, state["page"] + 1
        return state["page"] <= 3

    paragraph = 0
    while state["page"] <= 3:
        paragraph += 1
        if tables and paragraph % 4 == 0 and state["y"] < HEIGHT - MARGIN - 110:
            set_table(sheet, state, column_width, gap)
            continue
        x = 0.0
        for _ in range(rng.randint(3, 6)):
            said = rng.choice(REPEATED) if rng.random() < 0.15 else sentence(rng)
            numbers: list[int] = []
            for whole in said.split():
                word = whole
                sheet.page = int(state["page"])
                left = MARGIN + state["column"] * (column_width + gap)
                width = sheet.width(word)
                if x + width > column_width:
                    cut = len(word) * 2 // 3
                    head = word[:cut] + "-"
                    if cut > 3 and x + sheet.width(head) <= column_width and word.isalpha():
                        numbers.append(sheet.put(head, left + x, state["y"]))
                        word = word[cut:]
                    x = 0.0
                    if not line_break():
                        return sheet, sheet.finished(shuffled=shuffled)
                    sheet.page = int(state["page"])
                    left = MARGIN + state["column"] * (column_width + gap)
                numbers.append(sheet.put(word, left + x, state["y"]))
                x += sheet.width(word) + 2.8
            sheet.quotations.append((said, numbers))
        if not line_break() or not line_break():
            break
    return sheet, sheet.finished(shuffled=shuffled)


def set_table(sheet: Sheet, state: dict[str, float], width: float, gap: float) -> None:
    """Five rows of three cells."""
    left = MARGIN + state["column"] * (width + gap)
    sheet.page = int(state["page"])
    for row in range(5):
        cells = ("Item", "Number", "Price") if row == 0 else (
            sheet.rng.choice(WORDS).capitalize() + f" {sheet.rng.randint(100, 999)}",
            str(sheet.rng.randint(1, 40)),
            f"{sheet.rng.randint(1, 900)}.{sheet.rng.randint(10, 99)} EUR",
        )  # fmt: skip
        numbers: list[int] = []
        for at, cell in enumerate(cells):
            x = left + at * width / 3
            for word in cell.split():
                numbers.append(sheet.put(word, x, state["y"], bold=row == 0))
                x += sheet.width(word) + 2.8
        if row:
            sheet.quotations.append((" ".join(cells), numbers))
        state["y"] += LEADING
    state["y"] += LEADING


def normalized(text: str) -> tuple[str, list[int]]:
    """Letters and digits of a text, and where each is."""
    found = [(each, at) for at, each in enumerate(text) if each.isalnum()]
    return "".join(each.lower() for each, _ in found), [at for _, at in found]


def occurrences(parsed: ParsedDocument, sheet: Sheet) -> list[tuple[int, int] | None]:
    """Where each quotation is in the text that the parser made, in order of reading."""
    key, origin = normalized(parsed.text)
    at: dict[str, int] = {}
    places: list[tuple[int, int] | None] = []
    for said, _ in sheet.quotations:
        wanted, _ = normalized(said)
        place = key.find(wanted, at.get(wanted, 0))
        # One of several that the parser has torn: which of the others is which is not known.
        times = sum(each == said for each, _ in sheet.quotations)
        if place < 0 or key.count(wanted) < times:
            places.append(None)
            continue
        at[wanted] = place + len(wanted)
        places.append((origin[place], origin[place + len(wanted) - 1] + 1))
    return places


def is_inside(mark: Mark, box: Box) -> bool:
    """Whether the middle of a word is in the mark."""
    x, y = (box[0] + box[2]) / 2 / WIDTH, (box[1] + box[3]) / 2 / HEIGHT
    return mark.x0 <= x <= mark.x1 and mark.y0 <= y <= mark.y1


def judge(sheet: Sheet, numbers: list[int], marks: dict[int, list[Mark]]) -> tuple[bool, bool]:
    """Whether at least four fifths of the words are marked, and whether any other is."""
    marked = {
        number
        for number, (page, box) in enumerate(sheet.boxes)
        if any(is_inside(mark, box) for mark in marks.get(page, []))
    }
    wanted = set(numbers)
    return len(marked & wanted) >= 0.8 * len(wanted), bool(marked - wanted)


def main() -> None:
    """Print the figures as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quotations", type=int, default=300)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--show", action="store_true", help="what was missed")
    args = options.parse_args()
    rng = random.Random(args.seed)
    counts = {"quotations": 0, "right": 0, "unmarked": 0, "wrong": 0, "not_in_text": 0}
    counts["absent_marked"] = 0
    seconds: list[float] = []
    kinds = [
        {"columns": columns, "shuffled": shuffled, "tables": tables}
        for columns in (1, 2)
        for shuffled in (False, True)
        for tables in (False, True)
    ]
    while counts["quotations"] < args.quotations:
        for kind in kinds:
            sheet, data = typeset(rng, **kind)  # type: ignore[arg-type]
            parsed = parse(data, name="bench.pdf", max_bytes=10**8)
            count = len(pypdfium2.PdfDocument(data))
            words = {page: read_page_layer(data, page=page).words for page in range(1, count + 1)}
            starts = [(page.offset, page.number) for page in parsed.pages] or [(0, 1)]
            spans = {
                number: (offset, following)
                for (offset, number), (following, _) in pairwise([*starts, (len(parsed.text), 0)])
            }
            found = list(zip(sheet.quotations, occurrences(parsed, sheet), strict=True))
            share = -(-args.quotations // len(kinds))
            for (said, numbers), place in rng.sample(found, min(share, len(found))):
                if place is None:
                    counts["not_in_text"] += 1
                    continue
                start, end = place
                pages = [
                    number
                    for number, (offset, following) in spans.items()
                    if offset < end + 600 and following > start - 600
                ]
                begin = spans[max(min(pages) - 1, min(spans))][0]
                finish = spans[min(max(pages) + 1, max(spans))][1]
                before = perf_counter()
                marks = place_quotation(
                    parsed.text[begin:finish],
                    start - begin,
                    end - begin,
                    {page: words[page] for page in pages},
                    frozenset(),
                )
                seconds.append(perf_counter() - before)
                # A passage that a person has edited: its words are not on the page.
                other = sentence(rng)
                absent = place_quotation(
                    parsed.text[begin:start] + other + parsed.text[end:finish],
                    start - begin,
                    start - begin + len(other),
                    {page: words[page] for page in pages},
                    frozenset(),
                )
                counts["absent_marked"] += bool(absent)
                is_right, is_wrong = judge(sheet, numbers, marks)
                counts["quotations"] += 1
                counts["right"] += is_right and not is_wrong
                counts["wrong"] += is_wrong
                counts["unmarked"] += not marks
                if args.show and (is_wrong or not is_right):
                    print(kind, "WRONG" if is_wrong else "missed", said)
    print(
        json.dumps(
            {
                **counts,
                "right_share": round(counts["right"] / counts["quotations"], 4),
                "median_ms": round(1000 * sorted(seconds)[len(seconds) // 2], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
