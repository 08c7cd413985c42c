"""Whose memory: a user of a workspace (`UserScope`), and callbacks for its erasure."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.module_loading import import_string
from django.utils.translation import gettext

from accounts.models import User, Workspace
from accounts.services import can_edit, default_owner
from common import features
from common.errors import Forbidden, InvalidInput
from common.text import parse_integer

#: The default user of services: the single user of a private site.
LOCAL_USER = "local"
#: Sent by programs that do not know their user; such memories must not be mixed, so none are kept.
UNKNOWN_USER = "unknown"
#: In commands, before a user id that is meant to the letter, though a member has that name.
EXACT_PREFIX = "id:"
#: Prefix of the site's own accounts. Nobody can reach another's memory by naming it.
ACCOUNT_PREFIX = "user:"
MAX_USER_ID_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class UserScope:
    """One user's memory within one workspace. `user_id` is compared exactly."""

    workspace_id: int
    user_id: str


def user_scope(*, workspace: Workspace, user_id: str | None = LOCAL_USER) -> UserScope | None:
    """The memory of `user_id`; None for an unknown user, of whom nothing is kept or found.

    For callers that have checked the right to it. Raises InvalidInput for an invalid id.
    """
    name = (user_id or "").strip()
    if not name or name.casefold() == UNKNOWN_USER:
        return None
    assert user_id is not None
    if len(user_id) > MAX_USER_ID_CHARACTERS:
        raise InvalidInput(
            gettext(
                "A user id has at most {limit} characters; this one has {length}. Send a"
                " hash of it."
            ).format(
                limit=MAX_USER_ID_CHARACTERS,
                length=number_format(len(user_id), force_grouping=True),
            ),
            field="user_id",
        )
    if "\0" in user_id or (
        not user_id.isascii() and any("\ud800" <= letter <= "\udfff" for letter in user_id)
    ):
        raise InvalidInput(
            gettext("A user id cannot contain NUL or an unpaired surrogate."), field="user_id"
        )
    return UserScope(workspace.pk, user_id)


def command_user(workspace: Workspace, name: str | None = None) -> str:
    """The id of the user that a command means by `name`: the account of a member with that user
    name, else the id as it stands, as behind `id:`. Without a name the workspace's `default_owner`,
    or LOCAL_USER where it has none.
    """
    if name is None:
        owner = default_owner(workspace)
        return account_id(owner) if owner else LOCAL_USER
    if name.startswith(EXACT_PREFIX):
        return name.removeprefix(EXACT_PREFIX)
    member = workspace.memberships.filter(user__username=name.replace("\0", "")).first()
    return f"{ACCOUNT_PREFIX}{member.user_id}" if member else name


def user_label(scope: UserScope) -> str:
    """Whose memory it is, for people: `demo (user:2)`, or the id."""
    pk = account_pk(scope)
    user = None if pk is None else User.objects.filter(pk=pk).first()
    return f"{user.username} ({scope.user_id})" if user else f"“{scope.user_id}”"


def scope_of(*, user: Any, workspace: Workspace, user_id: str | None = None) -> UserScope | None:
    """The memory that a request of `user` works on: the single entry point for people and programs.

    Without `user_id` it is the account's own. Editors of the workspace, such as an assistant's
    login, may name users of their own; accounts of the site are excluded. Raises SwitchedOff,
    Forbidden and InvalidInput.
    """
    features.require("memory")
    own = account_id(user)
    if user_id is None or user_id == own:
        return UserScope(workspace.pk, own)
    scope = user_scope(workspace=workspace, user_id=user_id)
    if scope is None:
        return None
    plain = unicodedata.normalize("NFKC", user_id).casefold()
    letters = "".join(letter for letter in plain if letter.isprintable() and not letter.isspace())
    looks_like_an_account = letters.startswith(ACCOUNT_PREFIX)
    if looks_like_an_account:
        raise Forbidden(
            gettext(
                "Ids with “{prefix}…” belong to accounts of this site, whose memory is"
                " private. Leave user_id out to use your own."
            ).format(prefix=ACCOUNT_PREFIX)
        )
    if not can_edit(user=user, workspace=workspace):
        raise Forbidden(
            gettext(
                "You may use only your own memory in “{workspace}”, not the memory of"
                " “{user_id}”. Leave user_id out, or ask an owner for the editor role."
            ).format(workspace=workspace, user_id=user_id)
        )
    return scope


def account_id(user: Any) -> str:
    """The user id of an account of the site."""
    return f"{ACCOUNT_PREFIX}{user.pk}"


def account_pk(scope: UserScope) -> int | None:
    """The account's primary key; None for users named by programs."""
    if not scope.user_id.startswith(ACCOUNT_PREFIX):
        return None
    return parse_integer(scope.user_id.removeprefix(ACCOUNT_PREFIX))


Eraser = Callable[[UserScope], None]

_eraser_paths: list[str] = []


def register_eraser(path: str) -> None:
    """Register the dotted path of a function that is called inside each erasing transaction."""
    if path not in _eraser_paths:
        _eraser_paths.append(path)


def notify_erased(scope: UserScope) -> None:
    """Call all registered functions. If one raises, the whole erasure is rolled back."""
    for path in _eraser_paths:
        eraser: Eraser = import_string(path)
        eraser(scope)
