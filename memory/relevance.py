"""How sure it is that a row has to do with its question, on one scale for all questions. Pure.

Fitted in docs/decisions/0025.
"""

import numpy as np

from common.bm25 import Ids
from common.fusion import Numbers

#: What it says, as a logit, that the question names nobody, a row's speaker, or (-1) others only,
#: and that it names the row's very day.
SPEAKER = np.array([0.0, 1.5, -2.0])
DATE = 1.5

#: How similar a question is to any row, where there are too few rows to tell, and what few means.
USUAL_BACKGROUND = 0.15
FEW_ROWS = 20


def relevance(
    close: Numbers, coverage: Numbers, *, speaker: Ids | int = 0, date: Numbers | float = 0.0
) -> Numbers:
    """0..1, by logistic regression; a threshold of 0.3 loses hardly any evidence.

    `close` is the row's closeness, NaN while it is not embedded; `coverage` the share of the
    question's words that it holds; `speaker` 1 where somebody speaks in it whom the question names,
    -1 where only others do; `date` how much of a mentioned date is its own.
    """
    told = SPEAKER[speaker] + DATE * date
    by_words, by_both = 4 * coverage + told - 1.7, 6 * close + 2 * coverage + told - 2.5
    logits = np.where(np.isnan(close), by_words, by_both)
    shares: Numbers = 1 / (1 + np.exp(-logits))
    return shares


def settled_background(background: float | None, *, rows: int) -> float:
    """The mean similarity to all rows, nearer to the usual one the fewer rows it is the mean of:
    two rows that both answer the question would make each other common.

    None is for similarities on a scale on which it is 0.
    """
    if background is None:
        return 0.0
    doubt = (FEW_ROWS / (FEW_ROWS + rows)) ** 2
    return background + doubt * (USUAL_BACKGROUND - background)
