"""Invitations: links that make who opens them a member of a workspace. Begin with
`create_invitation`.

A token is random, shown once and stored as its digest. Accepting runs without row-level security,
because who accepts is no member yet: it reads by nothing but the token.
"""

import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from accounts.api_keys import secret_digest
from accounts.audit import Action, Kind, record_change
from accounts.members import add_member, checked_role
from accounts.models import (
    Invitation,
    InvitationQuerySet,
    Membership,
    Role,
    Workspace,
    WorkspaceGroup,
)
from common.errors import Conflict, InvalidInput, NotFound
from common.rls import bypass_rls

TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
TOKEN_BYTES = 32
MAX_DAYS = 90
MAX_USES = 1_000
MAX_OPEN = 200
_NO_MAIL = "django.core.mail.backends.dummy.EmailBackend"


def create_invitation(
    *,
    workspace: Workspace,
    user: Any,
    role: str = Role.VIEWER,
    groups: Iterable[int] = (),
    expires_at: datetime | None = None,
    max_uses: int | None = 1,
    email: str = "",
) -> tuple[Invitation, str]:
    """A new invitation and its token, which cannot be read again. It ends after a week unless
    `expires_at` says otherwise; `max_uses` of None is any number. Raises InvalidInput, NotFound for
    a group, and Conflict for too many open ones."""
    now = timezone.now()
    expires_at = expires_at or now + timedelta(days=7)
    if not now < expires_at <= now + timedelta(days=MAX_DAYS, minutes=1):
        raise InvalidInput(
            gettext("An invitation must expire within {limit} days.").format(limit=MAX_DAYS),
            field="expires_at",
        )
    if max_uses is not None and not 1 <= max_uses <= MAX_USES:
        raise InvalidInput(
            gettext("An invitation is for 1 to {limit} people, or for any number.").format(
                limit=MAX_USES
            ),
            field="max_uses",
        )
    email = email.strip()
    if email:
        try:
            validate_email(email)
        except ValueError as error:
            raise InvalidInput(gettext("This is not an email address."), field="email") from error
    wanted = set(groups)
    known = WorkspaceGroup.objects.filter(workspace=workspace, pk__in=wanted)
    if missing := wanted - set(known.values_list("pk", flat=True)):
        raise NotFound(gettext("The group {pk} does not exist here.").format(pk=min(missing)))
    if Invitation.objects.open().filter(workspace=workspace).count() >= MAX_OPEN:
        raise Conflict(
            gettext("The limit of {limit} open invitations is reached. Revoke unused ones.").format(
                limit=MAX_OPEN
            )
        )
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        invitation = Invitation.objects.create(
            workspace=workspace,
            digest=secret_digest(token),
            role=checked_role(role),
            groups=sorted(wanted),
            email=email,
            max_uses=max_uses,
            expires_at=expires_at,
            created_by=user,
        )
        _record(Action.MADE, invitation, role=Role(role), max_uses=max_uses)
    return invitation, token


def mail_is_sent() -> bool:
    """Whether the site has been told how to send mail."""
    return bool(settings.EMAIL_BACKEND != _NO_MAIL)


def send_invitation(*, invitation: Invitation, url: str) -> str:
    """Send the link to its address; returns why that failed, empty where it did not."""
    try:
        send_mail(
            gettext("You are invited to “{workspace}”").format(workspace=invitation.workspace),
            gettext(
                "{user} invites you to “{workspace}”. Open this link to join; it is"
                " valid until {day}:\n\n{url}\n\nAnyone with the link can join. Do not share"
                " it."
            ).format(
                user=invitation.created_by,
                workspace=invitation.workspace,
                day=f"{invitation.expires_at:%Y-%m-%d}",
                url=url,
            ),
            None,
            [invitation.email],
        )
    except OSError as error:  # also smtplib's
        return str(error)
    return ""


def open_invitation(token: str) -> Invitation:
    """The invitation of the token, with its workspace. Raises NotFound for one that is unknown,
    revoked, expired or used up: strangers are not told which."""
    with bypass_rls():
        found = _by_token(token).select_related("workspace", "created_by").first()
    if found is None:
        raise NotFound(
            gettext(
                "This invitation is not valid. It has expired, was revoked, or was"
                " already used. Ask for a new one."
            )
        )
    return found


@transaction.atomic
def accept_invitation(*, token: str, user: Any) -> tuple[Membership, bool]:
    """The membership of `user`, and whether it is new; who is a member already stays as they are
    and uses nothing up. Raises NotFound as `open_invitation` does."""
    with bypass_rls():
        named = Invitation.objects.filter(digest=secret_digest(token)).values("workspace")
        own = Membership.objects.filter(workspace__in=named, user=user).first()
        if own is not None:
            return own, False
        # Of several at once with the last use, one gets it; the others wait here.
        _by_token(token).select_for_update().first()
        invitation = open_invitation(token)
        groups = WorkspaceGroup.objects.filter(
            workspace=invitation.workspace_id, pk__in=invitation.groups
        )
        membership, is_new = add_member(
            workspace=invitation.workspace, user=user, role=invitation.role, groups=groups
        )
        if is_new:
            invitation.uses += 1
            invitation.accepted_by.append(membership.user_id)
            invitation.save(update_fields=["uses", "accepted_by"])
    return membership, is_new


def revoke_invitation(*, invitation: Invitation) -> Invitation:
    """It is refused from now on. One that is revoked already stays as it is."""
    with transaction.atomic():
        rows = Invitation.objects.filter(pk=invitation.pk, revoked_at=None)
        if rows.update(revoked_at=timezone.now()):
            _record(Action.REVOKED, invitation)
    invitation.refresh_from_db(fields=["revoked_at"])
    return invitation


def prune_invitations() -> int:
    """Delete invitations that ended a month ago, with the addresses that they were sent to; returns
    how many."""
    before = timezone.now() - timedelta(days=30)
    ended = Q(expires_at__lt=before) | Q(revoked_at__lt=before)
    return Invitation.objects.filter(ended).delete()[0]


def _by_token(token: str) -> InvitationQuerySet:
    if not TOKEN.fullmatch(token):
        token = ""  # which is nobody's
    return Invitation.objects.open().filter(digest=secret_digest(token))


def _record(action: Action, invitation: Invitation, **values: Any) -> None:
    record_change(
        action=action,
        kind=Kind.INVITATION,
        workspace_id=invitation.workspace_id,
        object_id=invitation.pk,
        values=values,
    )
