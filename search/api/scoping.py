"""What requests to the search have in common: where to look, and what a question is called."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accounts.models import Workspace
from common.errors import InvalidInput
from search.results import Scope
from search.services import scope_for


def asked_scope(user: Any, workspace: Workspace, asked: Mapping[str, Any]) -> Scope:
    """Where the checked parameters `asked` say to look, as far as the user may."""
    return scope_for(
        user=user,
        workspace=workspace,
        collections=tuple(asked.get("collection", ())),
        filter=asked.get("filter"),
        media_types=tuple(asked.get("type", ())),
        versions=asked.get("versions", "current"),
    )


@contextmanager
def called_q() -> Iterator[None]:
    """The services call the question `query` or `text`, requests call it `q`."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            str(error), field="q" if error.field == "query" else error.field
        ) from error
