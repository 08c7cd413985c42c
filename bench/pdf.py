"""PDFs: how many cells of tables are in their row and column, whether prose in columns is taken for
a table, and how long a page takes, beside pypdf, which read PDFs before.

    python -m bench.pdf [FILE.pdf…]

Without files, speed is measured on those that the tests make. Times are of the processor, the best
of three rounds, both readers in turn. Exit code: 1 if fewer than 95 cells in 100 are right, prose
has become a table, or pypdf is faster.
"""

import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import process_time

from pypdf import PdfReader

from reading.parsers.pdf import parse_pdf
from reading.tests.factories_pdf import finished, page, prose, rows_of
from reading.tests.test_parsers_cases import CASES, expected

ROUNDS = 3
LEAST_RIGHT = 0.95
PDFS = CASES / "pdf"


def main(paths: list[str]) -> int:
    right = report_tables()
    are_tables = report_columns()
    ratio = report_speed({Path(path).name: Path(path).read_bytes() for path in paths} or made())
    return int(right < LEAST_RIGHT or are_tables > 0 or ratio < 1)


def report_tables() -> float:
    """The share of cells that are right, of all tables."""
    found = total = 0
    files = sorted(PDFS.glob("table-*.pdf"))
    for file in files:
        cells = list(rows_of(expected(file).read_text()))
        rows = list(rows_of(parse_pdf(file.read_bytes(), name="table.pdf").text))
        own = sum(
            row < len(rows) and column < len(rows[row]) and rows[row][column] == cell
            for row, line in enumerate(cells)
            for column, cell in enumerate(line)
        )
        count = sum(map(len, cells))
        found, total = found + own, total + count
        print(f"{file.stem:32}{own:5} of {count} cells")
    print(f"{f'{len(files)} tables':32}{found:5} of {total} cells: {found / total:.1%}\n")
    return found / total


def report_columns() -> int:
    """How many texts in columns have become tables."""
    files = PDFS.glob("columns-*.pdf")
    texts = [parse_pdf(file.read_bytes(), name="columns.pdf").text for file in files]
    wrong = sum("\n| - " in text for text in texts)
    print(f"{'prose in columns':32}{wrong:5} of {len(texts)} taken for a table\n")
    return wrong


def made() -> dict[str, bytes]:
    """Files of one kind of page each, by name."""
    dense = page(9)
    for _ in range(60):
        prose(dense, 2)
    return {
        "dense prose": finished(dense),
        "two columns": (PDFS / "columns-2-justified.pdf").read_bytes(),
        "table over pages": (PDFS / "table-over-pages.pdf").read_bytes(),
        "table with lines": (PDFS / "table-grid-of-many-columns.pdf").read_bytes(),
    }


def report_speed(files: Mapping[str, bytes]) -> float:
    """How many times faster than pypdf, of all files together."""
    print(f"{'ms a page':32}{'pages':>5}{'pypdf':>8}{'now':>8}{'faster':>8}")
    sums = [0.0, 0.0]
    for name, data in files.items():
        count = len(PdfReader(io.BytesIO(data)).pages)
        times = [float("inf"), float("inf")]
        for _ in range(ROUNDS):
            for index, read in enumerate((by_pypdf, by_pdfium)):
                times[index] = min(times[index], timed(read, data))
        sums = [sums[0] + times[0], sums[1] + times[1]]
        old, new = (1000 * seconds / count for seconds in times)
        print(f"{name[:31]:32}{count:5}{old:8.2f}{new:8.2f}{old / new:8.2f}")
    print(f"{'all':53}{sums[0] / sums[1]:8.2f}")
    return sums[0] / sums[1]


def timed(read: Callable[[bytes], object], data: bytes) -> float:
    began = process_time()
    read(data)
    return process_time() - began


def by_pypdf(data: bytes) -> object:
    return [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]


def by_pdfium(data: bytes) -> object:
    return parse_pdf(data, name="file.pdf")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
