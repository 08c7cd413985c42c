"""Searches that a person keeps by name: listed, saved, renamed, deleted."""

from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import Workspace
from common.errors import Conflict, InvalidInput
from search.models import SavedSearch

MAX_NAME_CHARACTERS = 100
MOST_SAVED = 200


def save_search(*, user: Any, workspace: Workspace, name: str, parameters: str) -> SavedSearch:
    """Keep the search page's address behind the `?` under a name of the user's own.

    Raises InvalidInput for a name or an address that is none, and Conflict for a name that is
    taken or a list that is full.
    """
    if not parameters:
        raise InvalidInput("There is no search to save yet. Search first.", field="parameters")
    if SavedSearch.objects.filter(user=user, workspace=workspace).count() >= MOST_SAVED:
        raise Conflict(f"{MOST_SAVED} searches are saved, which is the most. Delete one first.")
    row = SavedSearch(
        user=user, workspace=workspace, name=checked_name(name), parameters=parameters
    )
    return _stored(row)


def change_search(
    *, saved: SavedSearch, name: str | None = None, parameters: str | None = None
) -> SavedSearch:
    """Give it another name, or another search; None leaves what there is. Raises as above."""
    if name is not None:
        saved.name = checked_name(name)
    if parameters is not None:
        if not parameters:
            raise InvalidInput("A saved search searches for something.", field="parameters")
        saved.parameters = parameters
    return _stored(saved)


def checked_name(name: str) -> str:
    """The name in one line. Raises InvalidInput for none, and for one that is too long."""
    found = " ".join(name.replace("\0", " ").split())
    if not 0 < len(found) <= MAX_NAME_CHARACTERS:
        raise InvalidInput(f"A name has 1 to {MAX_NAME_CHARACTERS} characters.", field="name")
    return found


def _stored(row: SavedSearch) -> SavedSearch:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict(
            f"You have a saved search “{row.name}” already. Choose another name, or delete that"
            " one first."
        ) from error
    return row
