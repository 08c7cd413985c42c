"""The bundled model, loaded once for all tests that need it, and a server of models."""

from collections.abc import Iterator

import pytest

from inference.backends.transformers_local import TransformersEmbedder
from inference.tests.stub_server import StubServer, stub_server


@pytest.fixture(scope="session")
def minilm() -> TransformersEmbedder:
    return TransformersEmbedder()


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with stub_server() as server:
        yield server
