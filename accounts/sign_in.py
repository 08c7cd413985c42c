"""Signing in, whatever the door: who may, the second step, the session and its list, the audit log.

Begin with `sign_in`. Doors are the login page, other servers (`accounts.external_people`), a
proxy's header (`accounts.proxy_sign_in`) and one-time links.
"""

import logging
from datetime import datetime, timedelta
from enum import StrEnum
from time import time
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone
from django.utils.encoding import force_bytes, force_str
from django.utils.http import base36_to_int, urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.credentials import (
    EXTERNAL_METHODS,
    LoginSession,
    SignInMethod,
    has_second_factor,
)
from accounts.models import Membership, Role, User
from accounts.rate_limits import client_address
from common.errors import Forbidden
from common.rls import bypass_rls

logger = logging.getLogger(__name__)

BACKEND = "accounts.backends.AccountBackend"
#: In the session: how and when its user came in, whether by a second factor too, when it was last
#: seen, and who is between the first step and the second.
METHOD_KEY, TIME_KEY, FACTOR_KEY = "sign_in_method", "sign_in_at", "second_factor"
SEEN_KEY, PENDING_KEY = "seen_at", "second_step"
#: Between the first step of a sign-in and the second, and after one for changes of its means.
SECOND_STEP_SECONDS, FRESH_SECONDS = 600, 900
SEEN_INTERVAL_SECONDS = 300
LINK_SECONDS = 900


class Refusal(StrEnum):
    """Why somebody is not let in, in the audit log."""

    INACTIVE = "inactive"
    NO_ACCOUNT = "no_account"
    GROUP = "group"
    DOMAIN = "domain"
    WORKSPACE = "workspace"
    ANSWER = "answer"
    CANCELLED = "cancelled"
    LOCAL_LOGIN = "local_login"
    SECOND_FACTOR = "second_factor"
    LINK = "link"


class SignInRefused(Forbidden):
    """The person is not let in; the message says what to do."""

    code = "sign_in_refused"

    def __init__(self, reason: Refusal, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def owns_anything(user: User) -> bool:
    """Whether the user owns a workspace or the site: their password always opens it."""
    with bypass_rls():  # of nobody but this user, who is not logged in yet
        owned = Membership.objects.filter(user=user, role=Role.OWNER)
        return bool(user.is_superuser or owned.exists())


def check_password_allowed(user: User) -> None:
    """Raise SignInRefused where RAGSITE_LOCAL_LOGIN leaves passwords to owners."""
    if settings.LOCAL_LOGIN != "everyone" and not owns_anything(user):
        raise SignInRefused(
            Refusal.LOCAL_LOGIN,
            gettext(
                "Only owners can log in with a password here. Sign in with your company account."
            ),
        )


def needs_second_factor(user: User) -> bool:
    """Whether the settings want one of a user who has a password."""
    return settings.SECOND_FACTOR == "all" or (
        settings.SECOND_FACTOR == "owners" and owns_anything(user)
    )


def asks_second_factor(user: User) -> bool:
    """Whether the password alone does not open the account."""
    return settings.SECOND_FACTOR != "off" and (
        has_second_factor(user) or needs_second_factor(user)
    )


def sign_in(
    request: HttpRequest,
    user: User,
    *,
    method: SignInMethod,
    is_two_factor: bool = False,
    expires_at: datetime | None = None,
) -> None:
    """Begin a session of `user`, who has proved who they are. `is_two_factor`: by two factors, or
    by what counts as such. Whatever the session held of somebody else is gone.
    """
    login(request, user, backend=BACKEND)
    session = request.session
    session.pop(PENDING_KEY, None)
    session[METHOD_KEY], session[TIME_KEY] = method.value, time()
    session[FACTOR_KEY] = is_two_factor or method in EXTERNAL_METHODS
    session.set_expiry(expires_at)
    list_session(request, user)
    with bypass_rls():  # the audit log has entries of no workspace
        record_change(
            action=Action.SIGNED_IN,
            kind=Kind.SESSION,
            workspace_id=None,
            user=user,
            values={"method": method},
        )


def record_refusal(*, reason: Refusal, method: SignInMethod, user: User | None = None) -> None:
    """Write to the audit log and the log of the process why somebody was not let in."""
    logger.warning("Sign-in by %s refused: %s", method.value, reason.value)
    with bypass_rls():  # the audit log has entries of no workspace
        record_change(
            action=Action.REFUSED,
            kind=Kind.SESSION,
            workspace_id=None,
            user=user,
            values={"method": method, "reason": reason},
        )


# --- the second step ---------------------------------------------------------------------------


def begin_second_step(request: HttpRequest, user: User, *, next_url: str) -> None:
    """Remember in the session who has shown the first factor; nobody is logged in by it."""
    request.session.cycle_key()
    request.session[PENDING_KEY] = {"user": user.pk, "next": next_url, "at": time()}


def pending_user(request: HttpRequest) -> tuple[User, str] | None:
    """Who is between the steps, and where they want to go; None after ten minutes."""
    pending = request.session.get(PENDING_KEY)
    if not pending or not 0 <= time() - pending["at"] <= SECOND_STEP_SECONDS:
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    return (user, pending["next"]) if user else None


def is_fresh(request: HttpRequest) -> bool:
    """Whether the user proved who they are a moment ago: passwords and second factors are changed
    by nobody who only found an open browser.
    """
    age = time() - float(request.session.get(TIME_KEY, 0))
    return 0 <= age <= FRESH_SECONDS


# --- sessions ----------------------------------------------------------------------------------


def list_session(request: HttpRequest, user: Any) -> None:
    """Put the request's session on the list of its user, or note that it was seen."""
    session = request.session
    session[SEEN_KEY] = time()
    if not session.session_key:
        session.create()
    method = session.get(METHOD_KEY, SignInMethod.PASSWORD)
    LoginSession.objects.update_or_create(
        session_id=session.session_key,
        defaults={
            "user": user,
            "method": method,
            "address": client_address(request),
            "agent": getattr(request, "META", {})
            .get("HTTP_USER_AGENT", "")[:300]
            .replace("\0", ""),
            "last_seen_at": timezone.now(),
        },
    )


def mark_seen(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    """Receiver: a session that begins is one that was just seen."""
    request.session[SEEN_KEY] = time()


def session_is_stale(request: HttpRequest) -> bool:
    """Whether the list is to be told that this session was seen."""
    return not 0 <= time() - request.session.get(SEEN_KEY, 0) <= SEEN_INTERVAL_SECONDS


def end_sessions(*, user: User, besides: str | None = None, number: int | None = None) -> int:
    """End the sessions of `user`: all but the one with the key `besides`, or the one with the id
    `number`. Returns how many.
    """
    rows = LoginSession.objects.filter(user=user)
    rows = rows.exclude(session_id=besides) if number is None else rows.filter(pk=number)
    keys = list(rows.values_list("session_id", flat=True))
    Session.objects.filter(pk__in=keys).delete()
    with bypass_rls():  # the audit log has entries of no workspace
        record_change(
            action=Action.ENDED,
            kind=Kind.SESSION,
            workspace_id=None,
            object_id=number if keys else None,
            count=len(keys),
        )
    return len(keys)


def prune_sessions() -> int:
    """Delete expired sessions, a thousand at a time; returns how many."""
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    deleted = 0
    while keys := list(expired.values_list("pk", flat=True)[:1000]):
        LoginSession.objects.filter(session__in=keys).delete()
        deleted += Session.objects.filter(pk__in=keys)._raw_delete("default")
    return deleted


# --- one-time links ----------------------------------------------------------------------------


class _LinkTokens(PasswordResetTokenGenerator):
    """Signed, and void once the user has logged in, has another password, or after 15 minutes."""

    key_salt = "accounts.sign_in.link"

    def check_token(self, user: Any, token: str | None) -> bool:
        try:
            issued = base36_to_int(str(token).split("-")[0])
        except ValueError:
            return False
        age = self._num_seconds(self._now()) - issued
        return bool(0 <= age <= LINK_SECONDS and super().check_token(user, token))


def make_link(user: User) -> tuple[str, str]:
    """The two parts of the address of a page that logs `user` in once, within 15 minutes."""
    return urlsafe_base64_encode(force_bytes(user.pk)), _LinkTokens().make_token(user)


def user_of_link(user_part: str, token: str) -> User | None:
    """Whom the link lets in; locks the row, so that no two requests use one link."""
    try:
        pk = int(force_str(urlsafe_base64_decode(user_part)))
    except (ValueError, OverflowError):
        return None
    users = User.objects.select_for_update().filter(is_active=True, pk=min(pk, 2**63 - 1))
    user = users.first()
    return user if user is not None and _LinkTokens().check_token(user, token) else None


def expiry(hours: float) -> datetime | None:
    """When a session that may last so many hours ends; None: as others do."""
    return timezone.now() + timedelta(hours=hours) if hours > 0 else None
