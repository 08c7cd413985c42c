"""Which metadata fields a collection counts as facets of its search results."""

import re
from collections.abc import Iterable

from common.errors import InvalidInput

MAX_FACETS = 10
MAX_FACET_CHARACTERS = 128

#: Keys with single dots between them; a dot or backslash within a key has a backslash before it.
_PATH = re.compile(r"(?:[^.\\\x00]|\\[.\\])+(?:\.(?:[^.\\\x00]|\\[.\\])+)*", re.DOTALL)


def checked_facets(paths: Iterable[str]) -> list[str]:
    """Unique paths into the metadata, in their order; raises InvalidInput."""
    checked = list(dict.fromkeys(path.strip() for path in paths if path.strip()))
    if len(checked) > MAX_FACETS:
        raise InvalidInput(
            f"A collection may choose {MAX_FACETS} facets. Leave some out.", field="facets"
        )
    for path in checked:
        if len(path) > MAX_FACET_CHARACTERS or not _PATH.fullmatch(path):
            raise InvalidInput(
                f"“{path[:MAX_FACET_CHARACTERS]}” is no field of the metadata. Write names"
                " with single"
                " dots between them, as in “author” or “topic.area”; a dot that belongs to a name"
                " has a backslash before it.",
                field="facets",
            )
    return checked
