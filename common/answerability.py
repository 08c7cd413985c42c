"""How likely it is that what was found holds an answer. Pure.

Fitted in docs/decisions/0032.
"""

#: By what a passage must be nearer, hold, or be surrounded by to speak for an answer.
NEARNESS, BACKGROUND, COVERAGE, CONSTANT = 7.5, 5.75, 6.3, -8.6


def answer_logit(*, nearness: float, background: float, coverage: float) -> float:
    """Above 0 an answer is likelier than none.

    `nearness` is that of the nearest passage, `background` that of just any one: 0 has nothing to
    do with the question, 1 is a usual answer. `coverage` is the share (0..1) of the question's
    words that the best passage holds.
    """
    return NEARNESS * nearness + BACKGROUND * background + COVERAGE * coverage + CONSTANT


def needed_nearness(*, background: float, coverage: float) -> float:
    """How near the nearest passage must be for an answer to be as likely as none."""
    return -(BACKGROUND * background + COVERAGE * coverage + CONSTANT) / NEARNESS
