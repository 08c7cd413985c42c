"""Members of a workspace: their roles, and leaving. A workspace always keeps an owner.

Begin with `remove_member`; who becomes a member does so by an invitation (`accounts.invitations`),
by a sign-in, or in the admin.
"""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.groups import add_members, checked_external_names
from accounts.models import Invitation, Membership, Role, Workspace, WorkspaceGroup
from common.errors import Conflict, Forbidden, InvalidInput


def is_owner(*, user: Any, workspace: Workspace) -> bool:
    """Whether `user` may manage the members of `workspace`."""
    return Membership.objects.filter(workspace=workspace, user=user, role=Role.OWNER).exists()


def require_owner(*, user: Any, workspace: Workspace) -> None:
    """Raise Forbidden unless `user` owns `workspace`."""
    if not is_owner(user=user, workspace=workspace):
        raise Forbidden(
            gettext("Only owners of “{workspace}” may do this. Ask one of them.").format(
                workspace=workspace
            )
        )


def checked_role(role: str) -> Role:
    """The role of this name. Raises InvalidInput."""
    if role not in Role.values:
        raise InvalidInput(
            gettext("The role “{role}” does not exist. Choose from: {names}.").format(
                role=role, names=", ".join(Role.values)
            ),
            field="role",
        )
    return Role(role)


@transaction.atomic
def add_member(
    *, workspace: Workspace, user: Any, role: str, groups: Iterable[WorkspaceGroup] = ()
) -> tuple[Membership, bool]:
    """The membership of `user`, and whether it is new: one that is there stays as it is."""
    membership, is_new = Membership.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": checked_role(role)}
    )
    if is_new:
        _record(Action.MADE, membership, role=Role(membership.role))
        for group in groups:
            add_members(group=group, memberships=[membership])
    return membership, is_new


@transaction.atomic
def change_role(*, membership: Membership, role: str) -> Membership:
    """Raises InvalidInput, and Conflict for the last owner."""
    wanted, before = checked_role(role), Role(membership.role)
    if wanted != before:
        _keep_an_owner(membership)
        membership.role = wanted
        membership.save(update_fields=["role", "updated_at"])
        _end_invitations(membership, Q(created_by=membership.user_id))
        _record(Action.CHANGED, membership, role=(before, wanted))
    return membership


@transaction.atomic
def set_external_names(*, membership: Membership, names: Iterable[str]) -> Membership:
    """What sources of documents call the member. Only owners say so: an email address or a user
    name is what people have written themselves. Raises InvalidInput."""
    wanted = checked_external_names(names)
    if wanted != membership.external_names:
        membership.external_names = wanted
        membership.save(update_fields=["external_names", "updated_at"])
        record_change(
            action=Action.CHANGED,
            kind=Kind.MEMBERSHIP,
            workspace_id=membership.workspace_id,
            object_id=membership.pk,
            fields=["external_names"],
        )
    return membership


@transaction.atomic
def remove_member(*, membership: Membership) -> None:
    """End the membership, and with it the member's groups and API keys here. What they made stays.
    Raises Conflict for the last owner."""
    _keep_an_owner(membership)
    # Who is sent away must not come back by a link that they know.
    _end_invitations(
        membership,
        Q(created_by=membership.user_id) | Q(accepted_by__contains=[membership.user_id]),
    )
    _record(Action.DELETED, membership, role=Role(membership.role))
    membership.delete()


def _end_invitations(membership: Membership, which: Q) -> None:
    rows = Invitation.objects.filter(which, workspace=membership.workspace_id, revoked_at=None)
    ids = list(rows.values_list("pk", flat=True))
    rows.filter(pk__in=ids).update(revoked_at=timezone.now())
    record_change(
        action=Action.REVOKED,
        kind=Kind.INVITATION,
        workspace_id=membership.workspace_id,
        object_id=ids,
        count=len(ids),
    )


def _keep_an_owner(membership: Membership) -> None:
    """Raise Conflict where there would be no owner without this one. Holds the workspace, so that
    two owners cannot leave at once."""
    Workspace.objects.select_for_update().get(pk=membership.workspace_id)
    owners = Membership.objects.filter(workspace=membership.workspace_id, role=Role.OWNER)
    if membership.role == Role.OWNER and not owners.exclude(pk=membership.pk).exists():
        raise Conflict(
            gettext("“{user}” is the only owner. Make another member an owner first.").format(
                user=membership.user
            )
        )


def _record(action: Action, membership: Membership, **values: Any) -> None:
    record_change(
        action=action,
        kind=Kind.MEMBERSHIP,
        workspace_id=membership.workspace_id,
        object_id=membership.pk,
        values={"user": membership.user_id, **values},
    )
