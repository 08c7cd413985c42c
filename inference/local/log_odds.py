"""What a judging model says, as scores in 0..1."""

import numpy as np
from numpy.typing import NDArray

from inference.base import InvalidScore


def probabilities(log_odds: NDArray[np.float32]) -> list[float]:
    """The logistic of each. Raises InvalidScore naming the first that is not finite.

    In float64, where two good texts keep their order up to log-odds of 36; in float32 both would
    round to 1 from 17 on.
    """
    if not np.isfinite(log_odds).all():
        row = int(np.argmin(np.isfinite(log_odds)))
        raise InvalidScore(
            f"the score of text {row} is NaN or infinite: set OPTIONS['dtype'] to 'float32'."
        )
    # Through logaddexp, which does not overflow for texts that are far from relevant.
    return [float(score) for score in np.exp(-np.logaddexp(0, -log_odds.astype(np.float64)))]
