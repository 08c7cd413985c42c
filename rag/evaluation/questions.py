"""Sets of questions with the passages that answer them. Begin with `load_question_set`.

A set is a folder with `questions.toml` (`[[questions]]`) or `questions.jsonl`, whose documents are
in collections of the site already, or one in the layout of BEIR, which brings its corpus.
docs/how-to/evaluate-answers.md describes the fields.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from documents.languages import detect_language
from search.evaluation.datasets import Dataset, DatasetError, load_dataset

#: Files of a set without a corpus, in the order in which they are looked for.
QUESTION_FILES = ("questions.toml", "questions.jsonl")
_FIELDS = {"id", "question", "language", "kind", "answer", "gold", "needs_all"}
_GOLD_FIELDS = {"document", "sentence", "passage"}
#: A gold passage is the section of its sentence up to this length, else the paragraph or table row.
MAX_SECTION_CHARACTERS = 1_500
#: Stands in a `passage` for everything between its first and its last words.
ELLIPSIS = " … "

_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SEPARATOR = re.compile(r"[\s|]+")


@dataclass(frozen=True, slots=True)
class Gold:
    """A passage that answers a question. `document` is a title, or the end of a key from a “/” on.
    `sentence` are its exact words; "" stands for the whole document. `passage` are the exact words
    of the passage where it is not the section of the sentence."""

    document: str
    sentence: str = ""
    passage: str = ""

    def is_of(self, *, key: str, title: str) -> bool:
        """Whether a document with this key and title is meant."""
        return self.document in (key, title) or key.endswith("/" + self.document)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question; without `gold` the documents do not answer it. One of `gold` will do, unless it
    `needs_all`. `answers` are alternatives, each of words that a right answer has."""

    id: str
    text: str
    language: str
    kind: str = ""
    answers: tuple[tuple[str, ...], ...] = ()
    gold: tuple[Gold, ...] = ()
    needs_all: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_answerable(self) -> bool:
        return bool(self.gold)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions, and the corpus they are about where the set brings one."""

    name: str
    questions: tuple[JudgedQuestion, ...]
    dataset: Dataset | None = None


def load_question_set(directory: Path) -> QuestionSet:
    """Reads a folder. Raises DatasetError, which names the place, for one that is no set."""
    name = directory.resolve().name
    for path in (directory / file for file in QUESTION_FILES):
        if path.is_file():
            questions = tuple(_question(each, place) for each, place in _records(path))
            if not questions:
                raise DatasetError(f"{path} holds no question.")
            twice = {each.id for each in questions}
            if len(twice) < len(questions):
                raise DatasetError(f"{path}: two questions have the same id.")
            return QuestionSet(name, questions)
    if not (directory / "corpus.jsonl").is_file():
        raise DatasetError(
            f"{directory} is no set of questions. It must hold {' or '.join(QUESTION_FILES)}, or"
            " corpus.jsonl, queries.jsonl and qrels.tsv."
        )
    dataset = load_dataset(directory)
    sample = " ".join(query.text for query in dataset.queries[:50])
    usual = detect_language(sample)
    questions = tuple(
        JudgedQuestion(
            id=query.id,
            text=query.text,
            language=usual,
            answers=tuple((str(answer),) for answer in _expected(query.fields)),
            gold=tuple(
                Gold(key) for key, grade in dataset.judgements[query.id].items() if grade > 0
            ),
            fields=query.fields,
        )
        for query in dataset.queries
    )
    return QuestionSet(name, questions, dataset)


def _expected(fields: Mapping[str, Any]) -> list[Any]:
    """The alternative answers of a query of a BEIR folder, in its field `answers` or `answer`."""
    found = fields.get("answers") or fields.get("answer") or []
    return found if isinstance(found, list) else [found]


def _records(path: Path) -> Iterable[tuple[Any, str]]:
    """The objects of a file, each with its place for an error message."""
    try:
        if path.suffix == ".toml":
            listed = tomllib.loads(path.read_text(encoding="utf-8")).get("questions", [])
            return [(each, f"{path}, question {n}") for n, each in enumerate(listed, start=1)]
        lines = path.read_text(encoding="utf-8").splitlines()
        return [
            (json.loads(line), f"{path}, line {n}")
            for n, line in enumerate(lines, start=1)
            if line.strip()
        ]
    except ValueError as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from error


def _question(record: Any, place: str) -> JudgedQuestion:
    """A record as a question. Raises DatasetError for a missing, unknown or wrong field."""
    if not isinstance(record, dict) or not str(record.get("question", "")).strip():
        raise DatasetError(f"{place}: not an object with a question.")
    gold = record.get("gold", [])
    if not isinstance(gold, list) or not all(isinstance(each, dict) for each in gold):
        raise DatasetError(f"{place}: gold must be a list of objects with document and sentence.")
    unknown = (set(record) - _FIELDS) | {name for each in gold for name in each} - _GOLD_FIELDS
    if unknown:
        raise DatasetError(
            f"{place}: {sorted(unknown)[0]} is not known. Fields are {', '.join(sorted(_FIELDS))},"
            f" and of gold {', '.join(sorted(_GOLD_FIELDS))}."
        )
    if any(not each.get("document") or not each.get("sentence") for each in gold):
        raise DatasetError(f"{place}: each gold needs a document and a sentence.")
    words = record.get("answer", [])
    words = words if isinstance(words, list) else [words]
    text = str(record["question"])
    return JudgedQuestion(
        id=str(record.get("id") or text),
        text=text,
        language=str(record.get("language") or detect_language(text)),
        kind=str(record.get("kind", "")),
        answers=(tuple(map(str, words)),) if words else (),
        gold=tuple(Gold(**{name: str(value) for name, value in each.items()}) for each in gold),
        needs_all=bool(record.get("needs_all")),
    )


def find_words(words: str, text: str, start: int = 0) -> tuple[int, int] | None:
    """The offsets of `words` in `text` from `start` on, however they are broken into lines and
    table cells; None where they do not stand there."""
    parts = [re.escape(part) for part in _SEPARATOR.split(words) if part]
    found = re.compile(r"[\s|]+".join(parts)).search(text, start) if parts else None
    return found.span() if found else None


def sentence_span(gold: Gold, text: str) -> tuple[int, int] | None:
    """The offsets of the gold sentence in its document's text; None where it is not there."""
    return find_words(gold.sentence, text) if gold.sentence else (0, len(text))


def passage_span(gold: Gold, text: str) -> tuple[int, int] | None:
    """The offsets of the gold passage in its document's text: `gold.passage`, or the section of
    the sentence, or of a long section its paragraph (of a table its row)."""
    if gold.passage:
        first, _, last = gold.passage.partition(ELLIPSIS)
        begin = find_words(first, text)
        end = find_words(last, text, begin[1]) if begin and last else begin
        return (begin[0], end[1]) if begin and end else None
    span = sentence_span(gold, text)
    if span is None or not gold.sentence:
        return span
    fences = [found.span() for found in _FENCE.finditer(text)]
    headings = [
        found.start()
        for found in _HEADING.finditer(text)
        if not any(first < found.start() < last for first, last in fences)
    ]
    section = _around(span, headings, text)
    if section[1] - section[0] <= MAX_SECTION_CHARACTERS:
        return section
    paragraph = _around(span, [found.end() for found in re.finditer(r"\n\s*\n", text)], text)
    if paragraph[1] - paragraph[0] <= MAX_SECTION_CHARACTERS:
        return paragraph
    return _around(span, [found.end() for found in re.finditer(r"\n", text)], text)


def _around(span: tuple[int, int], borders: Iterable[int], text: str) -> tuple[int, int]:
    """From the last border up to the span to the first one behind it."""
    borders = list(borders)
    begin = max((at for at in borders if at <= span[0]), default=0)
    end = min((at for at in borders if at >= span[1]), default=len(text))
    return begin, end
