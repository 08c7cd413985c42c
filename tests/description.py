"""The committed description of the API, parsed once a process."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

COMMITTED = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


@cache
def api_description() -> Any:
    """As Python's lists and mappings, which are not to be changed."""
    # libyaml's parser takes a tenth of the time.
    return yaml.load(COMMITTED.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
