"""Vectors and answers as the tests of stores need them."""

import numpy as np
from numpy.typing import NDArray

from search.stores import Matches


def random_vectors(count: int, *, seed: int = 7, scale: float = 3.0) -> NDArray[np.float32]:
    """Vectors of any length: a caller's need not be normalised."""
    values = np.random.default_rng(seed).normal(size=(count, 384)) * scale
    return values.astype(np.float32)


def numbers(count: int = 384, **at: float) -> list[float]:
    """Ones, but for the places named: `_7=0.5`."""
    values = [1.0] * count
    for place, value in at.items():
        values[int(place[1:])] = value
    return values


def ids(matches: Matches) -> list[str]:
    return [match.id for match in matches]
