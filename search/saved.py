"""Searches that a person keeps by name: listed, saved, renamed, deleted."""

from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import Workspace
from common.errors import Conflict, InvalidInput
from search.models import SavedSearch

MAX_NAME_CHARACTERS = 100
MAX_SAVED = 200


def save_search(*, user: Any, workspace: Workspace, name: str, parameters: str) -> SavedSearch:
    """Saves a query string of the search page under a name.

    Raises InvalidInput for an invalid name or empty parameters, Conflict for a name in use or a
    full list.
    """
    if not parameters:
        raise InvalidInput("There is no search to save yet. Search first.", field="parameters")
    if SavedSearch.objects.filter(user=user, workspace=workspace).count() >= MAX_SAVED:
        raise Conflict(f"{MAX_SAVED} searches are saved, which is the most. Delete one first.")
    row = SavedSearch(
        user=user, workspace=workspace, name=checked_name(name), parameters=parameters
    )
    return _save(row)


def update_saved_search(
    *, saved: SavedSearch, name: str | None = None, parameters: str | None = None
) -> SavedSearch:
    """Changes name or parameters; None leaves them. Raises like `save_search`."""
    if name is not None:
        saved.name = checked_name(name)
    if parameters is not None:
        if not parameters:
            raise InvalidInput("A saved search needs parameters.", field="parameters")
        saved.parameters = parameters
    return _save(saved)


def checked_name(name: str) -> str:
    """The name on one line. Raises InvalidInput for an empty or overlong one."""
    found = " ".join(name.replace("\0", " ").split())
    if not 0 < len(found) <= MAX_NAME_CHARACTERS:
        raise InvalidInput(f"A name has 1 to {MAX_NAME_CHARACTERS} characters.", field="name")
    return found


def _save(row: SavedSearch) -> SavedSearch:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise Conflict(
            f"You have a saved search “{row.name}” already. Choose another name, or delete that"
            " one first."
        ) from error
    return row
