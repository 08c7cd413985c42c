"""The bundled model, loaded once for all tests that need it."""

import pytest

from inference.backends.transformers_local import TransformersEmbedder


@pytest.fixture(scope="session")
def minilm() -> TransformersEmbedder:
    return TransformersEmbedder()
