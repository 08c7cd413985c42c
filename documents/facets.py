"""Which fields of the metadata a collection has counted beside its search results."""

import re
from collections.abc import Iterable

from common.errors import InvalidInput

MOST_FACETS = 10
MAX_CHARACTERS = 128

#: Keys with single dots between them; a dot or backslash within a key has a backslash before it.
_PATH = re.compile(r"(?:[^.\\\x00]|\\[.\\])+(?:\.(?:[^.\\\x00]|\\[.\\])+)*", re.DOTALL)


def checked_facets(paths: Iterable[str]) -> list[str]:
    """Paths into the metadata, each once, in their order; raises InvalidInput."""
    checked = list(dict.fromkeys(path.strip() for path in paths if path.strip()))
    if len(checked) > MOST_FACETS:
        raise InvalidInput(
            f"A collection may choose {MOST_FACETS} facets. Leave some out.", field="facets"
        )
    for path in checked:
        if len(path) > MAX_CHARACTERS or not _PATH.fullmatch(path):
            raise InvalidInput(
                f"“{path[:MAX_CHARACTERS]}” is no field of the metadata. Write names with single"
                " dots between them, as in “author” or “topic.area”; a dot that belongs to a name"
                " has a backslash before it.",
                field="facets",
            )
    return checked
