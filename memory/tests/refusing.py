"""An embedder that refuses some texts, as models do with what they cannot make a vector of."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inference.backends.hashing import HashingEmbedder
from inference.interfaces import InvalidVector

POISON = "poison"


class RefusingEmbedder(HashingEmbedder):
    """Fails for a whole batch with one text in it that says POISON."""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(POISON in text for text in texts):
            raise InvalidVector("one of these has no direction")
        return super().embed_documents(texts)
