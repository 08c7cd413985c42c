"""Fixtures of connections."""

from collections.abc import Iterator

import pytest

from inference.tests.stub_server import StubServer
from model_servers.tests.servers import openai_server


@pytest.fixture
def server() -> Iterator[StubServer]:
    with openai_server() as server:
        yield server
