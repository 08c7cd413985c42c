"""How the embedders of this process did when a question was last embedded: for whoever watches the
site, without asking a model for it."""

from time import monotonic

#: What went wrong longer ago than that says nothing any more.
KEEP_SECONDS = 300.0

_answered: set[str] = set()
_problems: dict[str, tuple[float, str]] = {}


def note_answer(alias: str) -> None:
    """It works."""
    _problems.pop(alias, None)
    _answered.add(alias)


def note_problem(alias: str, error: Exception) -> None:
    """It does not."""
    _problems[alias] = monotonic(), str(error)


def problem(alias: str) -> str:
    """What is wrong with it; empty where nothing is known of that."""
    at, said = _problems.get(alias, (0.0, ""))
    return said if said and monotonic() - at < KEEP_SECONDS else ""


def was_asked(alias: str) -> bool:
    """Whether it has ever answered."""
    return alias in _answered
