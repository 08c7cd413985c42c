"""Access lists: who may see a document."""

import re
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import Group

from accounts.models import Membership
from accounts.services import principals
from common.errors import InvalidInput

_PRINCIPAL = re.compile(r"(user|group):([1-9][0-9]{0,17})", re.ASCII)


def checked_access(
    access: Sequence[str] | None, *, workspace_id: int, user: Any = None
) -> list[str] | None:
    """The list in its order; None is everybody. Raises InvalidInput for an empty list, for whom
    there is not, and for a list that leaves out `user`, whose list it is."""
    if access is None:
        return None
    names = sorted(set(access))
    if not names:
        raise InvalidInput(
            "An empty list would hide it from everybody. Give null for everybody in the"
            " workspace, or delete the document.",
            field="access",
        )
    for name in names:
        match = _PRINCIPAL.fullmatch(name)
        if match is None or not _is_known(match[1], int(match[2]), workspace_id):
            raise InvalidInput(
                f"“{name}” is nobody here. Name members of the workspace as user:ID and groups as"
                " group:ID.",
                field="access",
            )
    if user is not None and not set(names) & set(principals(user)):
        raise InvalidInput(
            f"You could not see the document any more yourself. Add user:{user.pk}.",
            field="access",
        )
    return names


def _is_known(kind: str, pk: int, workspace_id: int) -> bool:
    if kind == "group":
        return Group.objects.filter(pk=pk).exists()
    return Membership.objects.filter(workspace=workspace_id, user=pk).exists()
