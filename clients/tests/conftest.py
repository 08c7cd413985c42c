"""A site in a process of its own, which the clients ask."""

import pytest

from rag.tests.conftest import committed, site, site_environment

__all__ = ["committed", "site", "site_environment"]


def pytest_configure(config: pytest.Config) -> None:
    """langchain-tests marks tests of chat models, which are imported with those that are run."""
    config.addinivalue_line("markers", "benchmark: unused")
    config.addinivalue_line("markers", "vcr: unused")
