"""Whether what was found can hold an answer at all. Pure.

Fitted in docs/decisions/0032.
"""

from dataclasses import dataclass
from math import exp, log

from common.answerability import answer_logit
from rag.answering.wording import not_found_text

__all__ = ["THRESHOLD", "Evidence", "Judgement", "judge", "not_found_text"]

#: Of confidence; below it nothing is answered.
THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a question and its best passages.

    `nearness` is that of the nearest passage, `background` that of just any one: 0 has nothing to
    do with the question, 1 is a usual answer; both are None where no model could say so. `coverage`
    is the share (0..1) of the question's `terms`, by how rare they are, that a best passage holds.
    """

    passages: int
    coverage: float = 0.0
    terms: int = 0
    nearness: float | None = None
    background: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether to answer, and how sure it is (0..1) that the passages hold an answer."""

    answers: bool
    confidence: float


def judge(evidence: Evidence, *, threshold: float = THRESHOLD) -> Judgement:
    """By logistic regression.

    Near passages speak for an answer, and so does it where all passages are nearer than strangers
    would be: then the question is on the collection's subject, and in its language. By words alone
    a long question needs a smaller share of them.
    """
    if not evidence.passages:
        return Judgement(False, 0.0)
    if evidence.nearness is None:
        logit = 12.6 * evidence.coverage + 1.75 * log(1 + evidence.terms) - 7.4
    else:
        background = evidence.background or 0.0
        logit = answer_logit(
            nearness=evidence.nearness, background=background, coverage=evidence.coverage
        )
    confidence = 1 / (1 + exp(-logit))
    return Judgement(confidence >= threshold, round(confidence, 4))
