"""What `manage.py demo` puts in: the documents of an invented firm, with questions whose answers
lie in them (`firm_questions`), and the project's own documentation."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

from django.conf import settings

from documents.ingestion.sources import Entry, discover, storable_key

FIRM_COLLECTION = "cargo-bikes"
DOCS_COLLECTION = "ragsite-docs"
#: The firm's documents are in these, and both collections are asked in them.
LANGUAGES = ("en", "de", "es")
FIRM: Path = settings.BASE_DIR / "demo" / "firm"
QUESTIONS: Path = settings.BASE_DIR / "demo" / "questions.toml"
TABLE_QUESTIONS: Path = settings.BASE_DIR / "demo" / "table-questions" / "questions.toml"
#: Pages that people want to see: the site keeps these files. Some are read by OCR, which takes
#: longest.
_PAGED = frozenset({".pdf", ".jpg"})


def firm_sources() -> Iterable[Entry]:
    """The firm's documents but for `firm_pages`."""
    return discover([path for path in sorted(FIRM.iterdir()) if path.suffix not in _PAGED])


def firm_pages() -> Iterable[Entry]:
    """The firm's contracts, scanned letter and photographed receipt."""
    return discover([path for path in sorted(FIRM.iterdir()) if path.suffix in _PAGED])


def docs_sources() -> Iterable[Entry]:
    """The project's README and what docs/ has for users: no decisions."""
    docs = [settings.BASE_DIR / "docs"]
    return chain(
        discover([settings.BASE_DIR / "README.md"]),
        *(discover(docs, glob=glob) for glob in ("*.md", "how-to/**/*.md", "reference/**/*.md")),
    )


@lru_cache(maxsize=1)
def firm_questions() -> Mapping[str, str]:
    """Questions by the key of the document that answers each."""
    return {key: question for question, key in _questions(QUESTIONS)}


@lru_cache(maxsize=1)
def firm_table_questions() -> Sequence[tuple[str, str]]:
    """Questions that are computed from tables, each with the key of the document that has it."""
    return _questions(TABLE_QUESTIONS)


def _questions(file: Path) -> list[tuple[str, str]]:
    if not file.exists():
        return []
    entries = tomllib.loads(file.read_text())["questions"]
    return [(each["question"], storable_key(str(FIRM / each["document"]))) for each in entries]
