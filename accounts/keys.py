"""API keys: made, looked up by their secret, revoked."""

import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.history import Action, Kind, note_change
from accounts.models import ApiKey, Membership, Scope, Workspace
from common.compiled import CompiledQuery
from common.errors import Conflict, Forbidden, InvalidInput, NotFound

SECRET_PREFIX = "rs_"  # noqa: S105 (how a secret begins, so that scanners know one)
SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{43}}")
SECRET_BYTES = 32
SHOWN_CHARACTERS = 11
MAX_NAME_CHARACTERS = 100
#: Live ones of a user in a workspace.
MAX_KEYS = 100
USE_NOTED_EVERY = timedelta(minutes=1)
_USABLE = CompiledQuery(
    lambda: ApiKey.objects.usable().filter(prefix="").select_related("user", "workspace")
)
#: What is said to who shows something that `authenticate_key` knows nothing of.
UNUSABLE = (
    "This is no API key of this site, or it has expired, was revoked, or its user left the"
    " workspace. Make a new one under API keys."
)


def create_key(
    *,
    user: Any,
    workspace: Workspace,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    maker: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its secret, which nobody can read again.

    A key that makes another, its `maker`, gives no more than it has. Raises InvalidInput, NotFound
    for a workspace that the user does not belong to, Forbidden, and Conflict for too many keys.
    """
    named = _checked_name(name)
    wanted = _checked_scopes(scopes)
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput("This moment has passed. Choose a later one.", field="expires_at")
    if maker is not None:
        _check_maker(maker, wanted, expires_at)
    membership = Membership.objects.filter(user=user, workspace=workspace).first()
    if membership is None:
        raise NotFound(f"{user} does not belong to “{workspace}”. Add the user to it first.")
    if ApiKey.objects.usable().filter(membership=membership).count() >= MAX_KEYS:
        raise Conflict(f"You have {MAX_KEYS} keys already. Revoke those that nobody uses.")
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        key = ApiKey.objects.create(
            workspace=workspace,
            user=user,
            membership=membership,
            name=named,
            prefix=secret[:SHOWN_CHARACTERS],
            digest=digest_of(secret),
            scopes=wanted,
            expires_at=expires_at,
        )
        _note(Action.MADE, key, scopes=[Scope(scope) for scope in wanted])
    return key, secret


def authenticate_key(secret: str) -> ApiKey | None:
    """The key that `secret` belongs to, with its user and workspace; None unless it may be used."""
    if not SECRET.fullmatch(secret):
        return None
    digest = digest_of(secret)
    # Found by what is shown of it anyway, and compared in a time that tells nothing of the rest.
    found = None
    for key in _USABLE.read(secret[:SHOWN_CHARACTERS]):
        if compare_digest(key.digest, digest):
            found = key
    if found is not None:
        _note_use(found)
    return found


def revoke_key(*, key: ApiKey) -> ApiKey:
    """Let the key open nothing any more. One that is revoked already stays as it is."""
    with transaction.atomic():
        live = ApiKey.objects.filter(pk=key.pk, revoked_at=None)
        if live.update(revoked_at=timezone.now()):
            _note(Action.REVOKED, key)
    key.refresh_from_db(fields=["revoked_at"])
    return key


def _note(action: Action, key: ApiKey, **values: Any) -> None:
    note_change(
        action=action, kind=Kind.KEY, workspace_id=key.workspace_id, thing=key.pk, values=values
    )


def digest_of(secret: str) -> str:
    """SHA-256 in hexadecimal digits. No salt and no stretching: 256 random bits need neither."""
    return sha256(secret.encode()).hexdigest()


def scopes_of(auth: Any) -> frozenset[str] | None:
    """The scopes of a request's `auth`; None where it was made with a session or a password."""
    return frozenset(auth.scopes) if isinstance(auth, ApiKey) else None


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    before = now - USE_NOTED_EVERY
    if key.last_used_at is None or key.last_used_at < before:
        unnoted = Q(last_used_at=None) | Q(last_used_at__lt=before)
        ApiKey.objects.filter(unnoted, pk=key.pk).update(last_used_at=now)
        key.last_used_at = now


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            f"A name has 1 to {MAX_NAME_CHARACTERS} printable characters. Call the key after what"
            " will use it.",
            field="name",
        )
    return name


def _checked_scopes(scopes: Iterable[str]) -> list[str]:
    """In the order in which they are always shown."""
    wanted = set(scopes)
    if unknown := wanted - set(Scope.values):
        raise InvalidInput(
            f"There is no scope “{min(unknown)}”. There are: {', '.join(Scope.values)}.",
            field="scopes",
        )
    if not wanted:
        raise InvalidInput(
            f"Choose at least one scope of: {', '.join(Scope.values)}.", field="scopes"
        )
    return [scope for scope in Scope.values if scope in wanted]


def _check_maker(maker: ApiKey, scopes: list[str], expires_at: datetime | None) -> None:
    if more := [scope for scope in scopes if scope not in maker.scopes]:
        raise Forbidden(
            f"A key can give only the scopes that it has, which do not include “{more[0]}”. Log in"
            " to make this one."
        )
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        raise Forbidden(
            f"A key can make none that outlives it, which ends {maker.expires_at.isoformat()}."
            " Name that moment or an earlier one, or log in."
        )
