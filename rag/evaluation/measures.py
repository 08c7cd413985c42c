"""Asks the questions of a set and measures the answers. Begin with `ask_questions` and
`measure_outcomes`.

Questions are asked of the service that chats and `manage.py ask` use. They are not noted in the
search log, and no memory is used.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from time import perf_counter
from typing import Any, get_args

from documents.models import Document
from documents.services import document_text
from rag.context import RagContext
from rag.evaluation.questions import (
    Gold,
    JudgedQuestion,
    passage_span,
    sentence_span,
)
from rag.events import Citation, Confidence, Done, Failed, Metadata, Passage, Retrieval, answer_text
from rag.services.answers import answer
from rag.services.questions import Question
from search.evaluation.evaluate import Progress, ignore_progress, latencies

#: A gold sentence is quoted if citations cover this share of its characters: all but a bracket or
#: a full stop.
MIN_QUOTED_SHARE = 0.9
#: Of the standard normal distribution, for intervals of 95 %.
Z = 1.959964

_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question and what was answered. What is None was not measured: an unanswerable question
    has no gold passage, and only extractive answers quote sentences. `confidence` is None where
    the answer failed. `answer_words` is the share (0..1) of the words of the expected answer that
    stand in the answer."""

    question: JudgedQuestion
    text: str
    citations: tuple[Citation, ...]
    confidence: Confidence | None
    milliseconds: float
    error: str = ""
    found_first: bool | None = None
    first_cited: bool | None = None
    cited: bool | None = None
    quoted: bool | None = None
    answer_words: float | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the answer; empty for a right one, and for one that is not sure where
        there is none."""
        if self.error:
            return (self.error,)
        if not self.question.is_answerable:
            is_sure = self.confidence == "high"
            return ("answered for sure, though the documents do not say",) if is_sure else ()
        if self.confidence == "none":
            return ("refused, though the documents say",)
        named = {
            "no citation is in the gold passage": self.cited is False,
            "the first citation is elsewhere": self.cited and self.first_cited is False,
            "the gold sentence is not quoted": self.quoted is False,
        }
        return tuple(problem for problem, holds in named.items() if holds)


@dataclass(slots=True)
class DocumentTexts:
    """Texts of documents as the site stored them, and where gold passages are in them."""

    texts: dict[int, str] = field(default_factory=dict)

    def of(self, document_id: int) -> str:
        """The text of a document; "" for one that was deleted meanwhile."""
        if document_id not in self.texts:
            document = Document.objects.filter(pk=document_id).first()
            self.texts[document_id] = document_text(document).text if document else ""
        return self.texts[document_id]

    def span(
        self, gold: Gold, passage: Passage, find: Callable[[Gold, str], _Span | None]
    ) -> _Span | None:
        """Where the gold passage or sentence is in the document of a cited passage; None if it is
        another document."""
        if not gold.is_of(key=passage.document_key, title=passage.title):
            return None
        return find(gold, self.of(passage.document_id)) if gold.sentence else (0, passage.end)

    def is_in_passage(self, citation: Citation, gold: Gold) -> bool:
        span = self.span(gold, citation.passage, passage_span)
        return span is not None and citation.start < span[1] and span[0] < citation.end

    def is_found(self, passage: Passage, gold: Gold) -> bool:
        span = self.span(gold, passage, sentence_span)
        return span is not None and passage.start < span[1] and span[0] < passage.end

    def is_quoted(self, citations: Sequence[Citation], gold: Gold) -> bool:
        """Whether the citations together cover the gold sentence."""
        covered: dict[int, set[int]] = {}
        for each in citations:
            span = self.span(gold, each.passage, sentence_span)
            if span is None:
                continue
            places = range(max(span[0], each.start), min(span[1], each.end))
            found = covered.setdefault(each.passage.document_id, set())
            found.update(places)
            if len(found) >= MIN_QUOTED_SHARE * (span[1] - span[0]):
                return True
        return False


def ask_questions(
    questions: Sequence[JudgedQuestion],
    *,
    context_of: Callable[[JudgedQuestion], RagContext],
    options: dict[str, Any],
    on_progress: Progress = ignore_progress,
) -> Iterator[Outcome]:
    """Asks each question in its context; `options` are those of `Question`, such as `model`."""
    texts = DocumentTexts()
    for number, question in enumerate(questions, start=1):
        started = perf_counter()
        asked = Question(question.text, memory=False, logged=False, **options)
        events = list(answer(asked, context=context_of(question)))
        milliseconds = (perf_counter() - started) * 1000
        last = events[-1]
        citations = tuple(event for event in events if isinstance(event, Citation))
        found = next((e.passages for e in events if isinstance(e, Retrieval)), ())
        extractive = any(
            isinstance(e, Metadata) and e.generator in ("extractive", "computed") for e in events
        )
        text = answer_text(events)
        gold, enough = question.gold, all if question.needs_all else any
        yield Outcome(
            question,
            text=text,
            citations=citations,
            confidence=last.verdict.confidence if isinstance(last, Done) else None,
            milliseconds=milliseconds,
            error=last.detail if isinstance(last, Failed) else "",
            found_first=any(texts.is_found(found[0], each) for each in gold) if found else False,
            first_cited=any(texts.is_in_passage(citations[0], each) for each in gold)
            if citations
            else False,
            cited=enough(
                [any(texts.is_in_passage(each, wanted) for each in citations) for wanted in gold]
            ),
            quoted=enough([texts.is_quoted(citations, wanted) for wanted in gold])
            if extractive and all(each.sentence for each in gold)
            else None,
            answer_words=_covered(question, text) if question.answers else None,
        )
        on_progress("ask", number, len(questions))


def _covered(question: JudgedQuestion, text: str) -> float:
    """The share of an expected answer's words that stand in `text`, of the alternative that has
    most."""
    said = set(_WORD.findall(text.casefold()))
    shares = []
    for alternative in question.answers:
        words = _WORD.findall(" ".join(alternative).casefold())
        shares.append(sum(word in said for word in words) / len(words) if words else 0.0)
    return max(shares)


#: Measures of the answerable questions by the attribute of `Outcome`, with their headings.
MEASURES = {
    "found_first": "first hit right",
    "first_cited": "first citation right",
    "cited": "some citation right",
    "quoted": "gold sentence quoted",
    "answer_words": "answer words covered",
}
#: Measures by degree of confidence: its share of all questions, and how often it is right.
DEGREES = {
    "high": "sure",
    "low": "perhaps",
    "none": "no answer",
    "high_right": "sure ones right",
    "low_right": "perhaps: some citation right",
    "high_unanswerable": "unanswerable called sure",
    "refused_unanswerable": "unanswerable refused",
    "refused_answerable": "answerable refused",
}


def measure_outcomes(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The measures of MEASURES and DEGREES as `share` with `interval` and `of`, how many questions
    it was measured on; and the percentiles of the time of an answer in milliseconds. A sure answer
    is right if the documents hold one and the first citation is in the gold passage."""
    answerable = [each for each in outcomes if each.question.is_answerable]
    others = [each for each in outcomes if not each.question.is_answerable]
    values = {
        name: [float(value) for each in answerable if (value := getattr(each, name)) is not None]
        for name in MEASURES
    }
    of_degree = {
        degree: [each for each in outcomes if each.confidence == degree]
        for degree in get_args(Confidence)
    }
    for degree in of_degree:
        values[degree] = [float(each.confidence == degree) for each in outcomes]
    values["high_right"] = [
        float(each.question.is_answerable and bool(each.first_cited)) for each in of_degree["high"]
    ]
    values["low_right"] = [
        float(each.question.is_answerable and bool(each.cited)) for each in of_degree["low"]
    ]
    values["high_unanswerable"] = [float(each.confidence == "high") for each in others]
    values["refused_unanswerable"] = [float(each.confidence == "none") for each in others]
    values["refused_answerable"] = [float(each.confidence == "none") for each in answerable]
    return {
        "questions": len(outcomes),
        "unanswerable": len(others),
        "errors": sum(bool(each.error) for each in outcomes),
        **{name: share_with_interval(found) for name, found in values.items()},
        **latencies([each.milliseconds for each in outcomes]),
    }


def share_with_interval(values: Sequence[float]) -> dict[str, Any] | None:
    """The mean of values from 0 to 1 with Wilson's interval of 95 % (E. B. Wilson, 1927), which is
    too wide rather than too narrow where values lie between 0 and 1; None without values."""
    if not values:
        return None
    n, share = len(values), sum(values) / len(values)
    center = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    interval = [round(max(center - half, 0.0), 4), round(min(center + half, 1.0), 4)]
    return {"share": round(share, 4), "interval": interval, "of": n}


def unresolved_citations(outcomes: Sequence[Outcome]) -> int:
    """How many citations do not have their quotation at their offsets in the document's text."""
    texts = DocumentTexts()
    return sum(
        texts.of(each.passage.document_id)[each.start : each.end] != each.quote
        for outcome in outcomes
        for each in outcome.citations
    )


def missing_gold(questions: Sequence[JudgedQuestion], *, collections: Sequence[int]) -> list[str]:
    """What is wrong with the gold of a set whose documents are on the site: documents that are not
    in the collections (ids), and sentences that do not stand in them, one line each."""
    documents = list(
        Document.objects.filter(collection__in=collections).current().only("pk", "key", "title")
    )
    texts = DocumentTexts()
    lines = []
    for question in questions:
        for gold in question.gold:
            fitting = [each for each in documents if gold.is_of(key=each.key, title=each.title)]
            if not fitting:
                lines.append(f"{question.id}: there is no document “{gold.document}”.")
            elif not any(sentence_span(gold, texts.of(each.pk)) for each in fitting):
                lines.append(f"{question.id}: “{gold.sentence}” is not in {gold.document}.")
    return lines
