"""Whether the passages found can answer the question at all: term coverage and a logistic
regression, fitted in docs/decisions/0070 and 0078. Begin with `judge_confidence`. Without
Django."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from rag.answering.extractive import ExtractiveAnswer
from rag.answering.groundedness import content_stems, names_and_numbers
from rag.answering.phrases import QUESTION_WORDS
from rag.events import Confidence, Passage

#: Document count for IDF in smaller collections, where nothing would be rare.
MIN_CHUNKS = 100


_WORD = re.compile(r"[^\W\d_]+")


def without_question_words(text: str) -> str:
    """The text without words that ask, which answers do not contain and PostgreSQL's stop words
    lack in most languages; unchanged if it has no others."""
    kept = _WORD.sub(
        lambda word: "" if word[0].casefold() in QUESTION_WORDS else word[0], text
    ).strip()
    return kept if _WORD.search(kept) else text


@dataclass(frozen=True, slots=True)
class QuestionTerm:
    """A lexeme of the question in one language. It occurs in `chunk_count` of that language's
    `chunks`, and in the retrieved chunks with the ids in `holders`."""

    language: str
    chunks: float
    chunk_count: float
    holders: frozenset[int]

    @property
    def weight(self) -> float:
        """Inverse document frequency as in BM25; highest for a term that occurs nowhere."""
        chunks = max(self.chunks, MIN_CHUNKS)
        return log(1 + (max(chunks - self.chunk_count, 0) + 0.5) / (self.chunk_count + 0.5))


def question_coverage(terms: Iterable[QuestionTerm], chunk_ids: Sequence[int]) -> tuple[float, int]:
    """The share (0..1) of the question's terms, weighted by IDF, that the best of these chunks
    contains, and how many terms there are: in the language that gives the highest share."""
    by_language: dict[str, list[QuestionTerm]] = defaultdict(list)
    for term in terms:
        by_language[term.language].append(term)
    coverages = []
    for found in by_language.values():
        total = sum(term.weight for term in found)
        covered = (sum(term.weight for term in found if pk in term.holders) for pk in chunk_ids)
        share = max(covered, default=0.0) / total if total else 0.0
        coverages.append((share, len(found)))
    return max(coverages, default=(0.0, 0))


def missing_names(question: str, passage: Passage) -> float:
    """The share (0..1) of the names and numbers in the question that the passage and its headings
    do not contain; 0 without any. Names are told by their capitals, so that questions on German
    passages have none."""
    wanted = names_and_numbers(question, language=passage.language)
    text = f"{passage.heading}\n{passage.text}"
    missing = (
        wanted - content_stems(text, content_only=False) - names_and_numbers(text, language="de")
    )
    return len(missing) / len(wanted) if wanted else 0.0


#: From this confidence on an answer is sure, and below the low one the question is refused.
HIGH_CONFIDENCE, LOW_CONFIDENCE = 0.5, 0.12
#: The high one for passages in another language, after a reranker found that those in the
#: question's own do not answer it.
SECOND_HIGH_CONFIDENCE = 0.85
#: The same for what a model of many languages compared: that there is an answer does not say that
#: the first quotation is it.
MULTILINGUAL_HIGH_CONFIDENCE, MULTILINGUAL_LOW_CONFIDENCE = 0.85, 0.35
#: The same where an answer is chosen among sections: there confidence is how often the first
#: citation is right, and not only whether there is an answer.
SECTION_HIGH_CONFIDENCE, SECTION_LOW_CONFIDENCE = 0.78, 0.1

#: Coefficients of the logistic regression.
NEARNESS_WEIGHT, BACKGROUND_WEIGHT, COVERAGE_WEIGHT, NAMES_WEIGHT = 7.5, 5.75, 8.0, -2.5
BIAS = -10.0
#: The same for models of many languages, to which all texts of a language are a little similar:
#: the background says nothing there.
MULTILINGUAL_NEARNESS_WEIGHT, MULTILINGUAL_COVERAGE_WEIGHT = 5.0, 8.0
MULTILINGUAL_NAMES_WEIGHT, MULTILINGUAL_BIAS = -2.75, -7.7
#: The same where sentences were compared, by the best one and its passage.
SENTENCE_NEARNESS_WEIGHT, SENTENCE_COVERAGE_WEIGHT = 3.6, 2.2
SENTENCE_NAMES_WEIGHT, SENTENCE_BIAS = -0.6, -5.05
#: How much nearer a model of many languages takes texts to be that are in the question's language,
#: those that answer it and others alike.
LANGUAGE_NEARNESS = 0.45
#: The same where an answer is chosen among sections: by how far the best one stands out of all and
#: is ahead of the next one, and by the similarity of its passage. Fitted in docs/decisions/0086.
SECTION_SCORE_WEIGHT, SECTION_LEAD_WEIGHT = 0.44, 0.64
SECTION_NEARNESS_WEIGHT, SECTION_BIAS = 0.76, -4.66
#: A greater lead says nothing more.
MAX_LEAD = 4.0
#: What is taken for the nearness where no model told it.
USUAL_NEARNESS = 1.2
#: What speaks against an answer without anything of the kind that the question asks for.
LACKS_KIND_WEIGHT = -2.5
#: The same where no embedding model could tell.
LEXICAL_COVERAGE_WEIGHT, LEXICAL_TERMS_WEIGHT, LEXICAL_BIAS = 12.6, 1.75, -7.4
#: Coverage of a question in another language than the passage, whose words cannot be there: about
#: the least that questions with an answer have.
FOREIGN_COVERAGE = 0.35


@dataclass(frozen=True, slots=True)
class Evidence:
    """Measurements of a question and its best passages. `nearness` is the calibrated similarity
    of the nearest passage, `background` that of an average one: 0 is unrelated, 1 a typical answer;
    both are None if no embedding model could tell. `sentence_nearness` is that of the sentence that
    answers best, None where sentences were not compared; then `coverage` is of its passage.
    `section_score` is how far the best section stands out of all that were found, and
    `section_lead` how far it is ahead of the next one, in standard deviations, None where no
    sections were compared.
    `coverage` is the IDF-weighted share (0..1) of the question's `terms` that the best passage
    contains, and `missing_names` the share of its names and numbers that it does not. `is_foreign`:
    the passage is in another language than the question. `is_multilingual`: the embedding model was
    made for many languages. `lacks_kind`: what is quoted has nothing of the kind that is asked for.
    `is_extreme`: it is the least or greatest row of a table that was asked for. `is_second`: other
    passages were read before, and do not answer."""

    passages: int
    coverage: float = 0.0
    terms: int = 0
    nearness: float | None = None
    sentence_nearness: float | None = None
    background: float | None = None
    missing_names: float = 0.0
    is_foreign: bool = False
    is_multilingual: bool = False
    section_score: float | None = None
    section_lead: float = 0.0
    lacks_kind: bool = False
    is_extreme: bool = False
    is_second: bool = False


def with_quotation(
    evidence: Evidence, quoted: ExtractiveAnswer, *, query_language: str
) -> Evidence:
    """The evidence with that of what is quoted first, for a question in `query_language`. Unchanged
    where no model compared sentences."""
    best = quoted.best
    if best is None or (best.nearness is None and not quoted.is_extreme):
        return evidence
    passage = best.passage
    is_foreign = passage.is_foreign_to(query_language)
    nearness = best.nearness
    if nearness is not None and is_foreign and evidence.is_multilingual:
        nearness += LANGUAGE_NEARNESS
    return replace(
        evidence,
        sentence_nearness=nearness,
        coverage=evidence.coverage if passage.coverage is None else passage.coverage,
        is_foreign=is_foreign,
        lacks_kind=quoted.lacks_kind,
        is_extreme=quoted.is_extreme,
    )


def judge_confidence(evidence: Evidence) -> Confidence:
    """Whether the passages contain an answer for sure, perhaps, or none."""
    confidence = answer_confidence(evidence)
    high, low = HIGH_CONFIDENCE, LOW_CONFIDENCE
    if evidence.section_score is not None:
        high, low = SECTION_HIGH_CONFIDENCE, SECTION_LOW_CONFIDENCE
    elif evidence.is_second:
        high = SECOND_HIGH_CONFIDENCE
    elif evidence.is_multilingual:
        high, low = MULTILINGUAL_HIGH_CONFIDENCE, MULTILINGUAL_LOW_CONFIDENCE
    if confidence >= high:
        return "high"
    return "low" if confidence >= low else "none"


def answer_confidence(evidence: Evidence) -> float:
    """The confidence (0..1) that the passages contain an answer, by logistic regression. Similar
    passages speak for an answer, and so does a high baseline similarity to a model of one language:
    then the question is on the collection's subject and in its language. What the question names
    and the passage does not speaks against it. Without similarities, a long question needs a
    smaller share of its terms."""
    if not evidence.passages:
        return 0.0
    if evidence.is_extreme:
        return 1.0
    if evidence.section_score is not None:
        nearness = USUAL_NEARNESS if evidence.nearness is None else evidence.nearness
        logit = (
            SECTION_SCORE_WEIGHT * evidence.section_score
            + SECTION_LEAD_WEIGHT * min(evidence.section_lead, MAX_LEAD)
            + SECTION_NEARNESS_WEIGHT * nearness
            + SECTION_BIAS
        )
    elif evidence.nearness is None:
        logit = (
            LEXICAL_COVERAGE_WEIGHT * evidence.coverage
            + LEXICAL_TERMS_WEIGHT * log(1 + evidence.terms)
            + LEXICAL_BIAS
        )
    else:
        coverage = evidence.coverage
        if evidence.is_foreign:
            coverage = max(coverage, FOREIGN_COVERAGE)
        if evidence.sentence_nearness is not None:
            logit = (
                SENTENCE_NEARNESS_WEIGHT * evidence.sentence_nearness
                + SENTENCE_COVERAGE_WEIGHT * coverage
                + SENTENCE_NAMES_WEIGHT * evidence.missing_names
                + SENTENCE_BIAS
            )
        elif evidence.is_multilingual:
            logit = (
                MULTILINGUAL_NEARNESS_WEIGHT * evidence.nearness
                + MULTILINGUAL_COVERAGE_WEIGHT * coverage
                + MULTILINGUAL_NAMES_WEIGHT * evidence.missing_names
                + MULTILINGUAL_BIAS
            )
        else:
            logit = (
                NEARNESS_WEIGHT * evidence.nearness
                + BACKGROUND_WEIGHT * (evidence.background or 0.0)
                + COVERAGE_WEIGHT * coverage
                + NAMES_WEIGHT * evidence.missing_names
                + BIAS
            )
    logit += LACKS_KIND_WEIGHT * evidence.lacks_kind
    return 1 / (1 + exp(-logit))
