"""Whose memory: a user of a workspace. Nothing here crosses from one scope to another."""

import unicodedata
from dataclasses import dataclass
from typing import Any

from accounts.models import Workspace
from accounts.services import can_edit
from common.errors import Forbidden, InvalidInput

#: Who is meant where a service function is told nobody: the one user of a site of one's own.
LOCAL = "local"
#: What a program sends that does not know its user; what all of them said must not be mixed.
UNKNOWN = "unknown"
#: Memories of the site's own accounts. Nobody reaches another's by naming it.
ACCOUNT_PREFIX = "user:"
MAX_USER_ID_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class UserScope:
    """One user's memory within one workspace. `user_id` is compared to the letter."""

    workspace_id: int
    user_id: str


def user_scope(*, workspace: Workspace, user_id: str | None = LOCAL) -> UserScope | None:
    """The memory of `user_id`; None where nobody is named, for whom nothing is kept or found.

    For callers that have made sure who asks. Raises InvalidInput for an id that cannot be.
    """
    name = (user_id or "").strip()
    if not name or name.casefold() == UNKNOWN:
        return None
    assert user_id is not None
    _check(user_id)
    return UserScope(workspace.pk, user_id)


def user_of_commands(workspace: Workspace) -> str:
    """Whose memory is meant where a command is told nobody: the account's of the only person who
    logs in to the workspace, so that page and command know the same, or else that of LOCAL."""
    people = workspace.memberships.filter(user__is_active=True).values_list("user_id", flat=True)[
        :2
    ]
    return f"{ACCOUNT_PREFIX}{people[0]}" if len(people) == 1 else LOCAL


def scope_of(*, user: Any, workspace: Workspace, user_id: str | None = None) -> UserScope | None:
    """The memory that a request of `user` works on: the one door for people and programs.

    Without `user_id` it is the account's own. Whoever may edit in the workspace, such as an
    assistant's own login, may name users of its own making; accounts of the site are not among
    them. Raises Forbidden and InvalidInput.
    """
    own = account_id(user)
    if user_id is None or user_id == own:
        return UserScope(workspace.pk, own)
    scope = user_scope(workspace=workspace, user_id=user_id)
    if scope is None:
        return None
    if _looks_like_an_account(user_id):
        raise Forbidden(
            f"“{ACCOUNT_PREFIX}…” are accounts of this site, and their memory is theirs alone."
            " Leave user_id out for your own."
        )
    if not can_edit(user=user, workspace=workspace):
        raise Forbidden(
            f"You may use your own memory in “{workspace}”, not that of “{user_id}”. Leave user_id"
            " out, or ask an owner for the editor role."
        )
    return scope


def account_id(user: Any) -> str:
    """The user id under which an account of the site remembers."""
    return f"{ACCOUNT_PREFIX}{user.pk}"


def account_of(scope: UserScope) -> int | None:
    """The id of the account whose memory it is; None for users that programs name."""
    number = scope.user_id.removeprefix(ACCOUNT_PREFIX)
    is_account = scope.user_id.startswith(ACCOUNT_PREFIX) and number.isascii() and number.isdigit()
    return int(number) if is_account else None


def _looks_like_an_account(user_id: str) -> bool:
    plain = unicodedata.normalize("NFKC", user_id).casefold()
    letters = "".join(letter for letter in plain if letter.isprintable() and not letter.isspace())
    return letters.startswith(ACCOUNT_PREFIX)


def _check(user_id: str) -> None:
    if len(user_id) > MAX_USER_ID_CHARACTERS:
        raise InvalidInput(
            f"A user id has at most {MAX_USER_ID_CHARACTERS} characters, this one has"
            f" {len(user_id):,}. Send a hash of it.",
            field="user_id",
        )
    if "\0" in user_id or (not user_id.isascii() and _has_surrogates(user_id)):
        raise InvalidInput("A user id cannot hold NUL or half a character.", field="user_id")


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
