"""A folder to follow, in a site whose own network may be asked."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def own_network(settings: Any) -> None:
    settings.SOURCE_NETWORKS = ["127.0.0.0/8", "::1/128"]


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """With one file, and below the only directory that requests may name."""
    settings.INGEST_ROOTS = [str(tmp_path)]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "rail.md").write_text("Trains are booked by the office.")
    return folder
