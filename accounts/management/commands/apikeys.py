"""`manage.py apikeys`: create, list and revoke API keys."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.api_keys import create_key, revoke_key
from accounts.models import ApiKey, Scope, User
from accounts.services import DEFAULT_WORKSPACE, get_workspace_by_slug
from common.console import CommandOutput, Options, ServiceCommand
from common.errors import NotFound
from common.text import parse_integer

MAX_DAYS = 36_500
HEADINGS = ("id", "name", "secret", "user", "workspace", "scopes", "last used", "state")


class Command(ServiceCommand):
    stays_in_main = True
    help = (
        "API keys: make one, whose secret is printed this once; list them; revoke one. Exit code: 0"
        " done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        making = add("create", create, "make a key")
        making.add_argument("--user", required=True, help="whose rights it has")
        making.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        making.add_argument("--name", required=True, help="what will use it")
        making.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=Scope.values,
            help="what it may be used for; repeat it for several",
        )
        making.add_argument("--expires-days", type=_days, help="default: it never expires")
        listing = add("list", list_keys, "all keys, newest first")
        listing.add_argument("--user", help="of this user only")
        listing.add_argument("--workspace", help="slug (default: all)")
        add("revoke", revoke, "end a key").add_argument("id", type=int)


def _days(text: str) -> int:
    days = parse_integer(text) or 0
    if not 1 <= days <= MAX_DAYS:
        raise ArgumentTypeError(f"name a number of days from 1 to {MAX_DAYS:,}")
    return days


def create(options: Options) -> CommandOutput:
    days = options["expires_days"]
    key, secret = create_key(
        user=_user(options["user"]),
        workspace=get_workspace_by_slug(options["workspace"]),
        name=options["name"],
        scopes=options["scope"],
        expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
    )
    told = f"Key {key.pk}. The secret is shown this once and stored nowhere:"
    return CommandOutput({**_key_data(key), "secret": secret}, lines=(told, secret))


def list_keys(options: Options) -> CommandOutput:
    rows = ApiKey.objects.select_related("user", "workspace")
    if options["user"]:
        rows = rows.filter(user=_user(options["user"]))
    if options["workspace"]:
        rows = rows.filter(workspace=get_workspace_by_slug(options["workspace"]))
    keys = [_key_data(key) for key in rows]
    cells = [
        (
            str(key["id"]),
            key["name"],
            f"{key['prefix']}…",
            key["user"],
            key["workspace"],
            ", ".join(key["scopes"]),
            key["last_used_at"] or "never",
            "live" if key["is_live"] else "revoked" if key["revoked_at"] else "expired",
        )
        for key in keys
    ]
    return CommandOutput(keys, () if keys else ["There are no API keys."], HEADINGS, cells)


def revoke(options: Options) -> CommandOutput:
    key = ApiKey.objects.select_related("user", "workspace").filter(pk=options["id"]).first()
    if key is None:
        raise NotFound(f"There is no key {options['id']}. `manage.py apikeys list` shows them.")
    revoke_key(key=key)
    return CommandOutput(
        _key_data(key), lines=(f"Key {key.pk}, “{key.name}”, opens nothing any more.",)
    )


def _key_data(key: ApiKey) -> dict[str, Any]:
    names = ("id", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at")
    return {
        **{name: getattr(key, name) for name in names},
        "user": key.user.username,
        "workspace": key.workspace.slug,
        "revoked_at": key.revoked_at,
        "is_live": key.is_live,
    }


def _user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise NotFound(f"There is no user “{username}”.")
    return user
