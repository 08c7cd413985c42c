"""Templates: the pipelines that come with the site, one JSON file each."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rag.pipelines.definition import Definition
from rag.pipelines.parsing import parse

FOLDER = Path(__file__).parent / "templates"


@cache
def templates() -> Mapping[str, Definition]:
    """By id, in the order of their names."""
    parsed = [parse(json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]
    return {each.id: each for each in parsed}
