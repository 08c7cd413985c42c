"""Groups of members of a workspace: made, named, filled, and mapped from names that other systems
use for them. Begin with `create_group`; access lists name a group by `WorkspaceGroup.principal`.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils.translation import gettext, ngettext

from accounts.audit import Action, Kind, record_change
from accounts.models import GroupMember, Membership, Workspace, WorkspaceGroup
from common.errors import Conflict, InvalidInput, NotFound

MAX_NAME_CHARACTERS = 100
MAX_EXTERNAL_NAMES = 50
MAX_EXTERNAL_NAME_CHARACTERS = 200
MAX_GROUPS = 500
MAX_SOURCE_CHARACTERS = 40


@transaction.atomic
def create_group(
    *, workspace: Workspace, name: str, external_names: Iterable[str] = ()
) -> WorkspaceGroup:
    """A group without members. Raises InvalidInput, and Conflict for a name that is taken."""
    # One at a time in a workspace, for names that differ in capitals only.
    Workspace.objects.select_for_update().get(pk=workspace.pk)
    name = _checked_name(workspace, name)
    if workspace.groups.count() >= MAX_GROUPS:
        raise Conflict(
            gettext("The limit of {limit} groups is reached. Delete unused ones.").format(
                limit=MAX_GROUPS
            )
        )
    group = WorkspaceGroup.objects.create(
        # Only for its id; names of these are unique on the site.
        group=Group.objects.create(name=f"{workspace.slug} {uuid4()}"),
        workspace=workspace,
        name=name,
        external_names=checked_external_names(external_names),
    )
    _record(Action.MADE, group)
    return group


@transaction.atomic
def update_group(
    *, group: WorkspaceGroup, name: str | None = None, external_names: Iterable[str] | None = None
) -> WorkspaceGroup:
    """Set what is given. Raises InvalidInput, and Conflict for a name that is taken."""
    Workspace.objects.select_for_update().get(pk=group.workspace_id)
    wanted: dict[str, Any] = {}
    if name is not None:
        wanted["name"] = _checked_name(group.workspace, name, group)
    if external_names is not None:
        wanted["external_names"] = checked_external_names(external_names)
    changed = [field for field, value in wanted.items() if getattr(group, field) != value]
    if changed:
        for field in changed:
            setattr(group, field, wanted[field])
        group.save(update_fields=[*changed, "updated_at"])
        _record(Action.CHANGED, group, fields=changed)
    return group


@transaction.atomic
def delete_group(*, group: WorkspaceGroup) -> None:
    """Delete the group. Raises Conflict while documents or sources are shared with it: what only
    it may see would be seen by nobody."""
    for label in ("documents.Document", "sources.DataSource"):
        rows = apps.get_model(label)._default_manager.filter(
            workspace=group.workspace_id, access__contains=[group.principal]
        )
        if count := rows.count():
            raise Conflict(
                ngettext(
                    "{count} document or source is shared with this group. Change its"
                    " access first.",
                    "{count} documents or sources are shared with this group. Change"
                    " their access first.",
                    count,
                ).format(count=count)
            )
    _record(Action.DELETED, group)
    Group.objects.filter(pk=group.pk).delete()


def add_members(*, group: WorkspaceGroup, memberships: Iterable[Membership]) -> None:
    """Put members of the workspace into the group; who is in it stays. Raises InvalidInput for
    members of another workspace."""
    wanted = list(memberships)
    if any(each.workspace_id != group.workspace_id for each in wanted):
        raise InvalidInput(
            gettext("Only members of the workspace can be in its groups."), field="members"
        )
    with transaction.atomic():
        _set_rows(group, {each.pk for each in wanted} | _member_ids(group, source=""))


def set_members(*, group: WorkspaceGroup, user_ids: Iterable[int]) -> None:
    """Exactly these users are in the group, beside those that a sign-in put there. Raises
    InvalidInput for who is no member of the workspace."""
    wanted = set(user_ids)
    found = dict(
        Membership.objects.filter(workspace=group.workspace_id, user__in=wanted).values_list(
            "user", "pk"
        )
    )
    if missing := wanted - found.keys():
        raise InvalidInput(
            gettext("User {pk} is not a member of the workspace. Add the user first.").format(
                pk=min(missing)
            ),
            field="members",
        )
    with transaction.atomic():
        _set_rows(group, set(found.values()))


@transaction.atomic
def set_groups(*, membership: Membership, group_ids: Iterable[int]) -> None:
    """The member is in exactly these groups, beside those where a sign-in put them. Raises
    NotFound."""
    wanted = set(group_ids)
    groups = WorkspaceGroup.objects.filter(workspace=membership.workspace_id)
    if missing := wanted - set(groups.filter(pk__in=wanted).values_list("pk", flat=True)):
        raise NotFound(gettext("The group {pk} does not exist here.").format(pk=min(missing)))
    for group in groups:
        there = _member_ids(group, source="")
        if (membership.pk in there) != (group.pk in wanted):
            _set_rows(group, there ^ {membership.pk})


def set_external_groups(
    *, user: Any, workspace: Workspace, names: Iterable[str], source: str
) -> list[WorkspaceGroup]:
    """Put a member into the groups that an outside system names, and take them out of those where
    the same `source`, such as `oidc`, put them before; what owners did by hand stays.

    A group has such a name where its own or one of its `external_names` is the same but for
    capitals. Returns the groups; names of no group are passed over. Raises NotFound where the user
    is no member of the workspace.
    """
    if not 0 < len(source) <= MAX_SOURCE_CHARACTERS:
        raise ValueError("A source of groups has a name of at most 40 characters.")
    with transaction.atomic():
        membership = (
            Membership.objects.select_for_update().filter(user=user, workspace=workspace).first()
        )
        if membership is None:
            raise NotFound(
                gettext("{user} does not belong to “{workspace}”.").format(
                    user=user, workspace=workspace
                )
            )
        found = groups_by_external_name(workspace=workspace)
        wanted = {group.pk: group for name in names for group in found.get(name.casefold(), ())}
        rows = GroupMember.objects.filter(membership=membership, source=source)
        there = set(rows.values_list("group", flat=True))
        rows.exclude(group__in=wanted).delete()
        GroupMember.objects.bulk_create(
            [
                GroupMember(workspace=workspace, group=group, membership=membership, source=source)
                for pk, group in wanted.items()
                if pk not in there
            ]
        )
        if changed := there ^ wanted.keys():
            record_change(
                action=Action.CHANGED,
                kind=Kind.MEMBERSHIP,
                workspace_id=workspace.pk,
                object_id=membership.pk,
                values={"user": membership.user_id, "groups": sorted(changed)},
            )
    return sorted(wanted.values(), key=lambda group: group.name)


def groups_by_external_name(*, workspace: Workspace) -> dict[str, list[WorkspaceGroup]]:
    """The groups of a workspace by each name that outside systems may use, casefolded."""
    found: dict[str, list[WorkspaceGroup]] = {}
    for group in WorkspaceGroup.objects.filter(workspace=workspace):
        for name in {each.casefold() for each in (group.name, *group.external_names)}:
            found.setdefault(name, []).append(group)
    return found


def _member_ids(group: WorkspaceGroup, *, source: str) -> set[int]:
    return set(
        GroupMember.objects.filter(group=group, source=source).values_list("membership", flat=True)
    )


def _set_rows(group: WorkspaceGroup, memberships: set[int]) -> None:
    """In a transaction: exactly these were put in by hand."""
    WorkspaceGroup.objects.select_for_update().get(pk=group.pk)
    before = _member_ids(group, source="")
    GroupMember.objects.filter(group=group, source="", membership__in=before - memberships).delete()
    GroupMember.objects.bulk_create(
        [
            GroupMember(workspace_id=group.workspace_id, group=group, membership_id=each)
            for each in sorted(memberships - before)
        ],
        ignore_conflicts=True,
    )
    if changed := before ^ memberships:
        users = Membership.objects.filter(pk__in=changed).order_by("user")
        _record(
            Action.CHANGED,
            group,
            fields=["members"],
            values={"users": list(users.values_list("user", flat=True))},
        )


def _checked_name(workspace: Workspace, name: str, group: WorkspaceGroup | None = None) -> str:
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            gettext("A group has a name of 1 to {limit} printable characters.").format(
                limit=MAX_NAME_CHARACTERS
            ),
            field="name",
        )
    others = WorkspaceGroup.objects.filter(workspace=workspace, name__iexact=name)
    if others.exclude(pk=group.pk if group else None).exists():
        raise Conflict(
            gettext("A group named “{name}” already exists. Choose another name.").format(name=name)
        )
    return name


def checked_external_names(names: Iterable[str]) -> list[str]:
    """Sorted, without empty ones. Raises InvalidInput."""
    found: Sequence[str] = sorted({name.strip() for name in names} - {""})
    too_long = [name for name in found if len(name) > MAX_EXTERNAL_NAME_CHARACTERS]
    if too_long or len(found) > MAX_EXTERNAL_NAMES or not all(map(str.isprintable, found)):
        raise InvalidInput(
            gettext(
                "A group or member can have {number} names in other systems, each of up"
                " to {limit} printable characters."
            ).format(number=MAX_EXTERNAL_NAMES, limit=MAX_EXTERNAL_NAME_CHARACTERS),
            field="external_names",
        )
    return list(found)


def _record(
    action: Action,
    group: WorkspaceGroup,
    *,
    fields: Sequence[str] = (),
    values: dict[str, Any] | None = None,
) -> None:
    record_change(
        action=action,
        kind=Kind.GROUP,
        workspace_id=group.workspace_id,
        object_id=group.pk,
        fields=fields,
        values=values,
    )
