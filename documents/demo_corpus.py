"""What `manage.py demo` puts in: the documents of an invented firm, with questions whose answers
lie in them (`firm_questions`), and the project's own documentation."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path

from django.conf import settings

from documents.ingestion.sources import Entry, discover, storable_key

FIRM_COLLECTION = "cargo-bikes"
DOCS_COLLECTION = "ragsite-docs"
FIRM: Path = settings.BASE_DIR / "demo" / "firm"
QUESTIONS: Path = settings.BASE_DIR / "demo" / "questions.toml"
#: These are read by OCR, which takes longest.
_PICTURES = ("landlord-letter-scan.pdf", "receipt-tidewater.jpg")


def firm_sources() -> Iterable[Entry]:
    """The firm's documents but for the pictures."""
    return discover([path for path in sorted(FIRM.iterdir()) if path.name not in _PICTURES])


def firm_pictures() -> Iterable[Entry]:
    """The firm's scanned letter and photographed receipt."""
    return discover([FIRM / name for name in _PICTURES])


def docs_sources() -> Iterable[Entry]:
    """The project's README and docs/."""
    return chain(
        discover([settings.BASE_DIR / "README.md"]),
        discover([settings.BASE_DIR / "docs"], glob="**/*.md"),
    )


@lru_cache(maxsize=1)
def firm_questions() -> Mapping[str, str]:
    """Questions by the key of the document that answers each."""
    if not QUESTIONS.exists():
        return {}
    entries = tomllib.loads(QUESTIONS.read_text())["questions"]
    return {storable_key(str(FIRM / each["document"])): each["question"] for each in entries}
