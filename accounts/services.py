"""Workspaces, logins and rights."""

import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import OperationalError, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Lower
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.models import ApiKey, Membership, Role, User, Workspace
from common.errors import Forbidden, InvalidInput, NotFound
from common.replicas import read_connection
from common.shards import catalog_connection, choose_shard, current_shard
from common.sql import fetch_prepared
from common.text import storable_text

DEFAULT_WORKSPACE = "default"
EDITING_ROLES = (Role.OWNER, Role.EDITOR)


def get_or_create_workspace(*, slug: str = DEFAULT_WORKSPACE, name: str = "") -> Workspace:
    """The workspace with this slug, created when missing; a command goes on on its shard."""
    workspace, _ = Workspace.objects.get_or_create(
        slug=slug, defaults={"name": name or slug.replace("-", " ").capitalize()}
    )
    choose_shard(workspace.shard)
    return workspace


def get_workspace_by_slug(slug: str) -> Workspace:
    """The workspace; a command goes on on its shard. Raises NotFound that lists the existing
    ones."""
    found = Workspace.objects.filter(slug=slug).first()
    if found is None:
        slugs = ", ".join(Workspace.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise NotFound(
            gettext("There is no workspace “{slug}”. There are: {slugs}.").format(
                slug=slug, slugs=slugs or gettext("none yet")
            )
        )
    choose_shard(found.shard)
    return found


def current_workspace(*, user: Any, slug: str = "") -> Workspace:
    """The workspace a request works in: the named one, else the user's first.

    Raises NotFound where the user is a member of none, or not of the named one.
    """
    workspaces = Workspace.objects.visible_to(user).order_by("id")
    workspace = (workspaces.filter(slug=slug) if slug else workspaces).first()
    if workspace is None:
        raise NotFound(
            gettext("You are not a member of a workspace “{slug}”.").format(slug=slug)
            if slug
            else gettext("You are not a member of a workspace yet. Ask an owner to add you.")
        )
    return workspace


#: How long a request that writes waits while its workspace is moved to another shard.
MOVE_PATIENCE_SECONDS = 60.0
_MOVE_PAUSE_SECONDS = 0.05


def shard_to_work_on(workspace: Workspace, *, method: str | None) -> str:
    """The shard of `workspace` for a request with the HTTP `method`. Who writes waits until a move
    of it to another one has ended; raises OperationalError if that takes too long."""
    deadline = monotonic() + MOVE_PATIENCE_SECONDS
    while workspace.is_moving and method not in ("GET", "HEAD", "OPTIONS"):
        if monotonic() > deadline:
            raise OperationalError("the workspace is being moved to another server")
        sleep(_MOVE_PAUSE_SECONDS)
        workspace.refresh_from_db(fields=["shard", "is_moving"])
    return workspace.shard


def set_language(*, user: User, language: str) -> None:
    """Keep the language of the user's pages; empty: the browser's. Raises InvalidInput."""
    if language and language not in dict(settings.LANGUAGES):
        codes = ", ".join(code for code, _ in settings.LANGUAGES)
        raise InvalidInput(
            gettext("The language “{language}” is not available. Choose from: {codes}.").format(
                language=language, codes=codes
            )
        )
    user.language = language
    user.save(update_fields=["language"])


def can_edit(*, user: Any, workspace: Workspace) -> bool:
    """Whether `user` may add, change and delete documents in `workspace`."""
    return Membership.objects.filter(
        workspace=workspace, user=user, role__in=EDITING_ROLES
    ).exists()


def require_editor(*, user: Any, workspace: Workspace) -> None:
    """Raise Forbidden unless `user` may edit in `workspace`."""
    if not can_edit(user=user, workspace=workspace):
        raise Forbidden(
            gettext(
                "You may read “{workspace}” but not change it. Ask an owner for the editor role."
            ).format(workspace=workspace)
        )


@transaction.atomic
def default_owner(workspace: Workspace) -> User | None:
    """For whom commands act in a workspace where no user is named: the owner who came first among
    those who can log in, however many members there are."""
    owners = Membership.objects.filter(
        workspace=workspace, role=Role.OWNER, user__is_active=True
    ).select_related("user")
    first = owners.order_by("pk").first()
    return first.user if first else None


def ensure_login(*, username: str, workspace: Workspace) -> tuple[User, str | None]:
    """An owner of `workspace` who may use the admin.

    Returns the user and, only when the login is new, its random password.
    """
    user = User.objects.filter(username=username).first()
    password = None
    if user is None:
        password = secrets.token_urlsafe(12)
        user = User.objects.create_superuser(username=username, password=password)
    membership, is_new = Membership.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": Role.OWNER}
    )
    if is_new:
        record_change(
            action=Action.MADE,
            kind=Kind.MEMBERSHIP,
            workspace_id=workspace.pk,
            object_id=membership.pk,
            values={"role": Role.OWNER},
        )
    return user, password


#: Ids of the groups of a user, whose id is the parameter twice: of Django's, which an administrator
#: of the site makes, and of workspaces.
GROUPS_OF_USER = """
    SELECT own.group_id FROM accounts_user_groups AS own
    WHERE own.user_id = %s AND NOT EXISTS (
        SELECT FROM accounts_workspacegroup AS team WHERE team.group_id = own.group_id)
    UNION
    SELECT own.group_id FROM accounts_groupmember AS own
    JOIN accounts_membership AS member ON member.id = own.membership_id
    WHERE member.user_id = %s"""


def rights_of(user: Any, *, key: ApiKey | None = None) -> frozenset[str]:
    """What `user` may come in by now, in words to compare: workspaces, groups, and the API key that
    was shown. Work that takes long is ended where one of them is gone."""
    if key is not None and not ApiKey.objects.usable().filter(pk=key.pk).exists():
        return frozenset()
    own = Membership.objects.visible_to(user).filter(user=user.pk)
    names = {f"workspace:{pk}" for pk in own.values_list("workspace", flat=True)}
    return frozenset({*names, *principals(user)}) if names else frozenset()


def principals(user: Any, groups: Iterable[int] | None = None) -> list[str]:
    """The names under which access lists know `user`: itself and its groups, whose ids may be
    passed.
    """
    if groups is None and user.pk:
        using = catalog_connection() if current_shard() else read_connection()
        rows = fetch_prepared(GROUPS_OF_USER, [user.pk] * 2, using=using)
        groups = [pk for (pk,) in rows]
    return [f"user:{user.pk}", *(f"group:{group}" for group in groups or ())]


_PRINCIPAL = re.compile(r"(?:(user|group):)?(.+)", re.DOTALL)
_ID = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def named_principals(names: Collection[str], *, workspace_id: int) -> dict[str, list[str]]:
    """The entries of access lists, `user:ID` and `group:ID`, that each name can mean in the
    workspace: such an entry, a member's user name or email address, or the name of a group, also
    behind `user:` and `group:`. None for a name of nobody here.
    """
    parts = {
        name: (match[1], match[2])
        for name in names
        if storable_text(name) == name and (match := _PRINCIPAL.fullmatch(name))
    }
    ids = [int(rest) for _, rest in parts.values() if _ID.fullmatch(rest)]
    words = [rest for _, rest in parts.values()]
    member = Membership.objects.filter(workspace=workspace_id).alias(address=Lower("user__email"))
    members = member.filter(
        Q(user__in=ids) | Q(user__username__in=words) | Q(address__in=[*map(str.lower, words)])
    ).values_list("user", "user__username", "user__email")
    # Groups that were made in the admin belong to no workspace.
    ours = Group.objects.filter(
        Q(workspace_group=None) | Q(workspace_group__workspace=workspace_id)
    ).annotate(shown=Coalesce("workspace_group__name", "name"))
    groups = ours.filter(Q(pk__in=ids) | Q(shown__in=words)).values_list("pk", "shown")
    entries: set[str] = set()
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pk, username, email in members if parts else ():
        entries.add(f"user:{pk}")
        known["user", username].add(f"user:{pk}")
        if email:
            known["address", email.lower()].add(f"user:{pk}")
    for pk, shown in groups if parts else ():
        entries.add(f"group:{pk}")
        known["group", shown].add(f"group:{pk}")
    found: dict[str, list[str]] = {}
    for name in names:
        kind, rest = parts.get(name, ("", ""))
        meant: set[str] = set()  # nothing is called ""
        if kind != "group":
            meant |= known["user", rest] | known["address", rest.lower()]
        if kind != "user":
            meant |= known["group", rest]
        found[name] = [name] if name in entries else sorted(meant)
    return found
