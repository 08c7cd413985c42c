"""Vectors in the forms that clients ask for: shortened, as numbers, as base64."""

import re
from base64 import b64encode
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput

Vectors = NDArray[np.float32]

#: Models trained so that the first numbers of a vector say the most (Matryoshka representation
#: learning, https://arxiv.org/abs/2205.13147), by their names, from their model cards.
MATRYOSHKA = re.compile(
    r"text-embedding-3-(small|large)|qwen3-embedding|embeddinggemma|nomic-embed-text"
    r"|mxbai-embed-large|arctic-embed-(l-v2|m-v2|m-v1\.5)|jina-embeddings-v[34]|gte-multilingual",
    re.IGNORECASE,
)


def shortened(vectors: Vectors, dimensions: int | None, *, model: str) -> Vectors:
    """The first `dimensions` numbers of each, brought to length 1 again. Raises InvalidInput where
    the model's vectors cannot be cut, or are not so long."""
    whole = vectors.shape[1]
    if dimensions is None or dimensions == whole:
        return vectors
    if dimensions > whole or not MATRYOSHKA.search(model):
        raise InvalidInput(
            f"Vectors of “{model}” have {whole} dimensions"
            + (" at most." if MATRYOSHKA.search(model) else " and cannot be cut shorter.")
            + " Leave `dimensions` out.",
            field="dimensions",
        )
    kept = vectors[:, :dimensions]
    lengths = np.linalg.norm(kept, axis=1, keepdims=True)
    if not lengths.all():
        raise InvalidInput(
            f"The first {dimensions} numbers of a vector are all 0. Ask for more.",
            field="dimensions",
        )
    cut: Vectors = kept / lengths
    return cut


def encoded(vector: Vectors, form: Literal["float", "base64"]) -> list[float] | str:
    """As JSON holds it; base64 is that of little-endian float32."""
    if form == "base64":
        return b64encode(vector.astype("<f4").tobytes()).decode()
    numbers: list[float] = vector.tolist()
    return numbers
