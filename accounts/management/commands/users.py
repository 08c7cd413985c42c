"""`manage.py users`: who may work in a workspace, and as what."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.members import add_member, change_role
from accounts.models import Membership, Role, User
from accounts.services import (
    DEFAULT_WORKSPACE,
    default_owner,
    get_or_create_workspace,
    get_workspace_by_slug,
)
from common.console import CommandOutput, Options, ServiceCommand, terminal_safe
from common.errors import Conflict, InvalidInput, NotFound
from common.text import pluralized

HEADINGS = ("id", "user", "email", "role", "state", "last login")


class Command(ServiceCommand):
    stays_in_main = True
    help = (
        "Members of a workspace: add one, whose password is printed this once if the login is new;"
        " list them; change a role. Exit code: 0 done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        where = ArgumentParser(add_help=False)
        where.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        add = self.add_actions(parser, where)
        adding = add("add", add_user, "a member; the login is made where there is none")
        adding.add_argument("username")
        adding.add_argument(
            "--role",
            choices=Role.values,
            help="default: editor, or owner where the workspace has none",
        )
        adding.add_argument("--email", default="", help="address of a new login")
        add("list", list_users, "the members, the default user of commands first")
        changing = add("role", set_role, "what a member may do")
        changing.add_argument("username")
        changing.add_argument("role", choices=Role.values)


@transaction.atomic
def add_user(options: Options) -> CommandOutput:
    """A member, and the password of a login that is new."""
    workspace = get_or_create_workspace(slug=options["workspace"])
    user = User.objects.filter(username=options["username"]).first()
    password = None
    if user is None:
        password = secrets.token_urlsafe(12)
        user = User(username=options["username"], email=options["email"])
        user.set_password(password)
        try:
            user.full_clean()
        except ValidationError as error:
            field, problems = next(iter(error.message_dict.items()))
            raise InvalidInput(f"{field}: {problems[0]}", field=field) from error
        user.save()
    has_owner = default_owner(workspace) is not None
    role = options["role"] or (Role.EDITOR if has_owner else Role.OWNER)
    membership, is_new = add_member(workspace=workspace, user=user, role=role)
    if not is_new:
        raise Conflict(
            f"{user.username} is a member of “{workspace.slug}” already, as {membership.role}."
            " Change that by `users role`."
        )
    lines = [f"{terminal_safe(user.username)} is {membership.role} of “{workspace.slug}”."]
    if password:
        lines.append(f"Password, shown this once: {password}")
    return CommandOutput({**_member_data(membership), "password": password}, lines)


def list_users(options: Options) -> CommandOutput:
    """The members, the default user of commands first."""
    workspace = get_workspace_by_slug(options["workspace"])
    default = default_owner(workspace)
    rows = workspace.memberships.select_related("user").order_by("pk")
    members = sorted(rows, key=lambda row: default is None or row.user_id != default.pk)
    data = [
        {**_member_data(row), "is_default": default is not None and row.user_id == default.pk}
        for row in members
    ]
    cells = [
        (
            str(row["id"]),
            row["username"],
            row["email"],
            row["role"],
            "" if row["is_active"] else "locked",
            row["last_login"],
        )
        for row in data
    ]
    summary = pluralized(len(data), "member")
    if default:
        name = terminal_safe(default.username)
        summary += f"; commands act for {name} unless --user names another"
    return CommandOutput(data, (f"{summary}.",), HEADINGS, cells)


def set_role(options: Options) -> CommandOutput:
    """Change what a member may do."""
    workspace = get_workspace_by_slug(options["workspace"])
    members = workspace.memberships.select_related("user")
    membership = members.filter(user__username=options["username"]).first()
    if membership is None:
        raise NotFound(
            f"“{options['username']}” is no member of “{workspace.slug}”. See `users list`, or add"
            " them by `users add`."
        )
    changed = change_role(membership=membership, role=options["role"])
    name = terminal_safe(membership.user.username)
    return CommandOutput(
        _member_data(changed), (f"{name} is {changed.role} of “{workspace.slug}”.",)
    )


def _member_data(row: Membership) -> dict[str, Any]:
    names = ("id", "username", "email", "is_active", "last_login")
    return {name: getattr(row.user, name) for name in names} | {"role": row.role}
