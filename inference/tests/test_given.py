"""The embedder of vectors that come from outside."""

import pytest

from inference.backends.given import GivenVectors
from inference.interfaces import BackendUnavailable


def test_it_says_how_long_vectors_are_and_embeds_nothing() -> None:
    embedder = GivenVectors(dimensions=1536, name="text-embedding-3-small")
    assert (embedder.dimensions, embedder.model_name) == (1536, "text-embedding-3-small")
    for ask in (lambda: embedder.embed_documents(["a"]), lambda: embedder.embed_query("a")):
        with pytest.raises(BackendUnavailable, match="give the vector"):
            ask()
    assert embedder.token_counter().count("some words here") > 0
