"""Validation and normalisation of vectors, whichever backend made them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference.interfaces import DimensionMismatch, InvalidVector


def check_vectors(array: ArrayLike, *, dimensions: int) -> NDArray[np.float32]:
    """`array` as float32 of shape (n, dimensions) or, for one vector, (dimensions,).

    Raises DimensionMismatch, or InvalidVector naming the first row that is zero, NaN or infinite.
    """
    with np.errstate(over="ignore"):  # too big for float32 becomes infinite and is named below
        vectors = np.asarray(array, dtype=np.float32)
    if vectors.ndim not in {1, 2}:
        raise InvalidVector(
            f"expected one vector or a list of them, got {vectors.ndim} axes: pass an array of"
            f" shape (n, {dimensions})."
        )
    if vectors.ndim == 2 and len(vectors) == 0:
        return vectors.reshape(0, dimensions)
    if vectors.shape[-1] != dimensions:
        raise DimensionMismatch(expected=dimensions, actual=vectors.shape[-1])
    rows = vectors.reshape(-1, dimensions)
    # In float64 the squares of float32 neither overflow nor vanish.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    usable = np.isfinite(squares) & (squares > 0)
    if not usable.all():
        row = int(np.argmin(usable))
        fault = "all zeros" if squares[row] == 0 else "not finite (NaN or infinite)"
        raise InvalidVector(
            f"vector {row} is {fault}: its distance to anything is undefined."
            " Check the text it was made from; for a model in half precision set dtype float32."
        )
    return vectors


def normalized(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length 1. A zero vector stays zero, so that it is reported as such."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return rows


def weighted_means(
    vectors: NDArray[np.float32], weights: Sequence[int], windows_of_text: Sequence[int]
) -> NDArray[np.float32]:
    """One unit vector for each text: the weighted mean of its consecutive windows."""
    weighted = vectors * np.array(weights, dtype=np.float32)[:, None]
    starts = np.cumsum([0, *windows_of_text[:-1]])
    return normalized(np.add.reduceat(weighted, starts, axis=0))
