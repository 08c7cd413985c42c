"""Files of every format, each beside what is read of it: `cases/FORMAT/NAME` and `NAME.expected`.

Another reading of a file must be meant: `python -m reading.tests.test_parsers_cases` writes what is
expected anew, and the difference is reviewed like any other.
"""

import json
import re
from pathlib import Path

import pytest

from reading.parsers import ParseError, parse
from reading.sandbox.protocol import document_fields

CASES = Path(__file__).with_name("cases")
#: Its words differ from version to version.
LXML = re.compile(r" \([^(]*\(<string>, line \d+\)\)")
FILES = sorted(file for file in CASES.rglob("*") if file.is_file() and file.suffix != ".expected")


def reading_of(file: Path) -> str:
    """What the parser tells of the file, a line each, and then its text; or its refusal."""
    data = file.read_bytes()
    try:
        document = parse(data, name=file.name)
    except ParseError as error:
        return f"{error.code}: {LXML.sub('', error.message)}\n"
    fields = (
        f"{name}: {json.dumps(value, ensure_ascii=False)}\n"
        for name, value in document_fields(document).items()
        if value
    )
    text = document.text if document.text.encode() != data else "(as in the file)"
    return f"{''.join(fields)}\n{text}\n"


def expected(file: Path) -> Path:
    return file.with_name(f"{file.name}.expected")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CASES)))
def test_a_file_is_read_as_expected(file: Path) -> None:
    assert reading_of(file) == expected(file).read_bytes().decode()


def test_nothing_is_expected_of_a_file_that_is_not_there() -> None:
    assert set(CASES.rglob("*.expected")) == set(map(expected, FILES))


if __name__ == "__main__":
    for file in FILES:
        expected(file).write_bytes(reading_of(file).encode())
