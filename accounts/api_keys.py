"""API keys: create, authenticate by secret, revoke."""

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
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.models import ApiKey, Membership, Scope, Workspace
from common.errors import Conflict, Forbidden, InvalidInput, NotFound
from common.sql import CompiledQuery

SECRET_PREFIX = "rs_"  # noqa: S105 (how a secret begins, so that scanners know one)
SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{43}}")
SECRET_BYTES = 32
PREFIX_CHARACTERS = 11
MAX_NAME_CHARACTERS = 100
#: Live ones of a user in a workspace.
MAX_KEYS = 100
LAST_USED_INTERVAL = timedelta(minutes=1)
_USABLE = CompiledQuery(
    lambda: ApiKey.objects.usable().filter(prefix="").select_related("user", "workspace")
)
#: Error message for a key that `authenticate_key` does not accept.
INVALID_KEY = (
    "This is no API key of this site, or it has expired, was revoked, or its user left the"
    " workspace. Make a new one under API keys."
)


class ScopeMissing(Forbidden):
    """The key lacks the required scope."""

    code = "insufficient_scope"

    def __init__(self, scope: str, *, has: Iterable[str]) -> None:
        super().__init__(
            f"This API key lacks the scope “{scope}”; it has: {', '.join(has)}. Make one that has"
            " it, under API keys."
        )


class KeyLimited(Forbidden):
    """The key is limited to collections, and this belongs to the whole workspace."""

    code = "key_limited"

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "This API key is limited to some collections, but this request needs the"
                " whole workspace. Create a key without that limit under API keys."
            )
        )


def create_key(
    *,
    user: Any,
    workspace: Workspace,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    collections: Iterable[int] = (),
    maker: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its secret, which cannot be read again.

    With `collections`, their ids, it opens nothing else; without, all. A key that creates another,
    its `maker`, cannot grant more than it has. Raises InvalidInput, NotFound for a workspace that
    the user does not belong to and for collections, Forbidden, and Conflict for too many keys.
    """
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            gettext(
                "A name has 1 to {limit} printable characters. Name the key after the"
                " program that uses it."
            ).format(limit=MAX_NAME_CHARACTERS),
            field="name",
        )
    wanted = _checked_scopes(scopes)
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput(
            gettext("This time is in the past. Choose a later one."), field="expires_at"
        )
    limits = set(collections)
    rows = workspace.collections.using(workspace.alias).filter(pk__in=limits)
    if missing := limits - set(rows.values_list("pk", flat=True)):
        raise NotFound(gettext("The collection {pk} does not exist here.").format(pk=min(missing)))
    if maker is not None and maker.collections:
        raise KeyLimited
    if maker is not None:
        _check_maker(maker, wanted, expires_at)
    membership = Membership.objects.filter(user=user, workspace=workspace).first()
    if membership is None:
        raise NotFound(
            gettext("{user} does not belong to “{workspace}”. Add the user to it first.").format(
                user=user, workspace=workspace
            )
        )
    if ApiKey.objects.usable().filter(membership=membership).count() >= MAX_KEYS:
        raise Conflict(
            gettext("You already have {limit} keys. Revoke unused ones.").format(limit=MAX_KEYS)
        )
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        key = ApiKey.objects.create(
            workspace=workspace,
            user=user,
            membership=membership,
            name=name,
            prefix=secret[:PREFIX_CHARACTERS],
            digest=secret_digest(secret),
            scopes=wanted,
            expires_at=expires_at,
            collections=sorted(limits),
        )
        values = {"collections": key.collections} if limits else {}
        _record(Action.MADE, key, scopes=[Scope(scope) for scope in wanted], **values)
    return key, secret


def authenticate_key(secret: str) -> ApiKey | None:
    """The key of `secret`, with user and workspace; None if it is invalid, expired or revoked."""
    if not SECRET.fullmatch(secret):
        return None
    digest = secret_digest(secret)
    # Looked up by its public prefix, and compared in constant time.
    found = None
    for key in _USABLE.read(secret[:PREFIX_CHARACTERS]):
        if compare_digest(key.digest, digest):
            found = key
    if found is not None:
        found.collections = [int(pk) for pk in found.collections]  # read as an array of numpy
        now = timezone.now()
        before = now - LAST_USED_INTERVAL
        if found.last_used_at is None or found.last_used_at < before:
            unnoted = Q(last_used_at=None) | Q(last_used_at__lt=before)
            ApiKey.objects.filter(unnoted, pk=found.pk).update(last_used_at=now)
            found.last_used_at = now
    return found


def revoke_key(*, key: ApiKey) -> ApiKey:
    """Revoke the key. One that is revoked already stays as it is."""
    with transaction.atomic():
        live = ApiKey.objects.filter(pk=key.pk, revoked_at=None)
        if live.update(revoked_at=timezone.now()):
            _record(Action.REVOKED, key)
    key.refresh_from_db(fields=["revoked_at"])
    return key


def _record(action: Action, key: ApiKey, **values: Any) -> None:
    record_change(
        action=action, kind=Kind.KEY, workspace_id=key.workspace_id, object_id=key.pk, values=values
    )


def secret_digest(secret: str) -> str:
    """SHA-256 in hexadecimal. Neither salt nor stretching: the secret has 256 random bits."""
    return sha256(secret.encode()).hexdigest()


def scopes_of(auth: Any) -> frozenset[str] | None:
    """The scopes of a request's `auth`; None for a session or a password. What is remembered of
    people belongs to no collection, so that a key limited to some does not reach it."""
    if not isinstance(auth, ApiKey):
        return None
    return frozenset(auth.scopes) - (
        {Scope.MEMORY, Scope.ADMIN} if auth.collections else frozenset()
    )


def collections_of(auth: Any) -> frozenset[int] | None:
    """Ids of the collections that a request's `auth` is limited to; None for all."""
    return frozenset(auth.collections) or None if isinstance(auth, ApiKey) else None


def _checked_scopes(scopes: Iterable[str]) -> list[str]:
    """The scopes without repeats, in the order of `Scope`."""
    wanted = set(scopes)
    if unknown := wanted - set(Scope.values):
        raise InvalidInput(
            gettext("The scope “{unknown}” does not exist. Choose from: {names}.").format(
                unknown=min(unknown), names=", ".join(Scope.values)
            ),
            field="scopes",
        )
    if not wanted:
        raise InvalidInput(
            gettext("Choose at least one scope of: {names}.").format(names=", ".join(Scope.values)),
            field="scopes",
        )
    return [scope for scope in Scope.values if scope in wanted]


def _check_maker(maker: ApiKey, scopes: list[str], expires_at: datetime | None) -> None:
    if more := [scope for scope in scopes if scope not in maker.scopes]:
        raise Forbidden(
            gettext(
                "A key can grant only its own scopes, which do not include “{more}”. Log"
                " in to create this key."
            ).format(more=more[0])
        )
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        raise Forbidden(
            gettext(
                "A new key cannot outlive this key, which expires at {moment}. Choose"
                " that time or an earlier one, or log in."
            ).format(moment=maker.expires_at.isoformat())
        )
