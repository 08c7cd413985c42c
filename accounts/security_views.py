"""Pages of Account → Security: password, second factors, linked accounts, sessions."""

import re
from collections.abc import Callable
from functools import wraps
from time import time
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import HASH_SESSION_KEY, authenticate, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.audit import Action, Kind, record_change
from accounts.credentials import Identity, LoginSession, SecondFactor, SignInMethod
from accounts.forms import CodeForm, NewPasskeyForm, PasswordForm
from accounts.models import User
from accounts.rate_limits import TooManyRequests
from accounts.second_factors import (
    add_app,
    add_passkey,
    new_passkey_options,
    new_recovery_codes,
    new_secret,
    remove_factor,
)
from accounts.sign_in import (
    FACTOR_KEY,
    METHOD_KEY,
    TIME_KEY,
    end_sessions,
    is_fresh,
    list_session,
    needs_second_factor,
)
from common.errors import Forbidden, NotFound
from common.rls import bypass_rls
from common.web import errors_in_form, login_required_page

_View = Callable[..., HttpResponse]
_GET_OR_POST = ["GET", "HEAD", "POST"]


def _own(request: HttpRequest) -> User:
    return cast("User", request.user)


def _security_page(view: _View) -> Any:
    """Decorator: for logged-in users, never cached."""
    return never_cache(login_required_page(view))


def _fresh(view: _View) -> _View:
    """Decorator: only for whoever has proved who they are within 15 minutes."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not is_fresh(request):
            return redirect_to_login(request.path, reverse("security_confirm"))
        return view(request, *args, **kwargs)

    return guarded


def _local(view: _View) -> _View:
    """Decorator: second factors are of people with a password, where the settings want them."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if settings.SECOND_FACTOR == "off":
            raise NotFound(gettext("Second factors are disabled on this site."))
        if not _own(request).has_usable_password():
            raise Forbidden(
                gettext(
                    "You sign in with an external account. Set up the second factor of that"
                    " account."
                )
            )
        return view(request, *args, **kwargs)

    return guarded


@require_GET
@_security_page
def security(request: HttpRequest) -> HttpResponse:
    """Everything about how the user comes in."""
    user = _own(request)
    factors = list(SecondFactor.objects.filter(user=user))
    by_kind = {each.kind: each for each in factors}
    has_factor = any(each.kind != SecondFactor.Kind.RECOVERY for each in factors)
    context = {
        "sessions": _sessions(request),
        "identities": Identity.objects.filter(user=user),
        "has_password": user.has_usable_password(),
        "offers_factors": settings.SECOND_FACTOR != "off" and user.has_usable_password(),
        "must_have_factor": settings.SECOND_FACTOR != "off"
        and not has_factor
        and user.has_usable_password()
        and needs_second_factor(user),
        "app": by_kind.get(SecondFactor.Kind.TOTP),
        "recovery": by_kind.get(SecondFactor.Kind.RECOVERY),
        "passkeys": [each for each in factors if each.kind == SecondFactor.Kind.PASSKEY],
        "has_factor": has_factor,
    }
    return render(request, "accounts/security.html", context)


@require_http_methods(_GET_OR_POST)
@_security_page
def confirm(request: HttpRequest) -> HttpResponse:
    """Ask for the password again, before something that an open browser alone must not do."""
    target = request.POST.get("next") or request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}):
        target = "security"
    user = _own(request)
    form = PasswordForm(request.POST if request.method == "POST" else None)
    status = 200
    if form.is_valid():
        try:
            password = form.cleaned_data["password"]
            if authenticate(request, username=user.get_username(), password=password) == user:
                request.session[TIME_KEY] = time()
                return redirect(target)
            form.add_error("password", gettext("This is not your password."))
        except TooManyRequests as error:
            form.add_error("password", str(error))
            status = error.status
    context = {"form": form, "next": target, "has_password": user.has_usable_password()}
    return render(request, "accounts/confirm.html", context, status=status)


@require_http_methods(_GET_OR_POST)
@_security_page
def password(request: HttpRequest) -> HttpResponse:
    """Change the password, which ends all other sessions. After a one-time link the former one is
    not asked for: whoever needs such a link does not know it.
    """
    user = _own(request)
    is_recovery = request.session.get(METHOD_KEY) == SignInMethod.LINK and is_fresh(request)
    if not is_recovery and not user.has_usable_password():
        raise Forbidden(gettext("You sign in with an external account and have no password here."))
    kind: Any = SetPasswordForm if is_recovery else PasswordChangeForm
    form = kind(user, request.POST if request.method == "POST" else None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        list_session(request, user)
        _record(Kind.USER, user.pk, Action.CHANGED, fields=["password"])
        end_sessions(user=user, besides=request.session.session_key)
        messages.success(
            request, gettext("The password is changed. All other sessions were ended.")
        )
        return redirect("security")
    return render(request, "accounts/password.html", {"form": form})


def _record(kind: Kind, pk: int, action: Action, **more: Any) -> None:
    with bypass_rls():  # the audit log has entries of no workspace
        record_change(action=action, kind=kind, workspace_id=None, object_id=pk, **more)


# --- second factors ----------------------------------------------------------------------------


@require_http_methods(_GET_OR_POST)
@_security_page
@_local
@_fresh
def authenticator(request: HttpRequest) -> HttpResponse:
    """Set up an authenticator app."""
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with errors_in_form(form, "code"):
            add_app(request, code=form.cleaned_data["code"])
    if form.is_bound and not form.errors:
        messages.success(request, gettext("The authenticator app is set up."))
        return _after_new_factor(request)
    import segno  # noqa: PLC0415 (few processes need it)

    secret, address = new_secret(request)
    drawing = segno.make(address, micro=False).svg_inline(
        scale=5, border=2, dark="#000", light="#fff", svgclass="qr", lineclass=None, omitsize=True
    )
    context = {
        "form": form,
        "secret": " ".join(re.findall(".{1,4}", secret)),
        "address": address,
        "drawing": mark_safe(drawing),  # noqa: S308 (of squares)
        "replaces": SecondFactor.objects.filter(
            user=_own(request), kind=SecondFactor.Kind.TOTP
        ).exists(),
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/authenticator.html", context, status=status)


@require_http_methods(_GET_OR_POST)
@_security_page
@_local
@_fresh
def passkey(request: HttpRequest) -> HttpResponse:
    """Make a passkey."""
    form = NewPasskeyForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with errors_in_form(form):
            add_passkey(request, name=form.cleaned_data["name"], answer=form.cleaned_data["answer"])
    if form.is_bound and not form.errors:
        messages.success(request, gettext("The passkey is created."))
        return _after_new_factor(request)
    context = {"form": form, "options": new_passkey_options(request)}
    return render(request, "accounts/passkey.html", context, status=400 if form.errors else 200)


def _after_new_factor(request: HttpRequest) -> HttpResponse:
    """The session now has the factor; whoever has no recovery codes yet gets them."""
    request.session[FACTOR_KEY] = True
    user = _own(request)
    if SecondFactor.objects.filter(user=user, kind=SecondFactor.Kind.RECOVERY).exists():
        return redirect("security")
    return render(request, "accounts/recovery_codes.html", {"codes": new_recovery_codes(user=user)})


@require_http_methods(_GET_OR_POST)
@_security_page
@_local
@_fresh
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Make new recovery codes. They are shown without a redirect, because they would have to be
    stored until then.
    """
    user = _own(request)
    others = SecondFactor.objects.filter(user=user).exclude(kind=SecondFactor.Kind.RECOVERY)
    if not others.exists():
        raise NotFound(
            gettext("Recovery codes replace an app or a passkey. Set up one of them first.")
        )
    codes = new_recovery_codes(user=user) if request.method == "POST" else []
    return render(request, "accounts/recovery_codes.html", {"codes": codes})


@require_http_methods(_GET_OR_POST)
@_security_page
@_fresh
def factor_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST remove the factor."""
    factor = SecondFactor.objects.filter(user=_own(request), pk=pk).first()
    if factor is None:
        raise NotFound(gettext("This second factor does not exist or is not yours."))
    if request.method == "POST":
        remove_factor(factor=factor)
        messages.success(request, gettext("Removed."))
        return redirect("security")
    return render(request, "accounts/factor_remove.html", {"factor": factor})


@require_http_methods(_GET_OR_POST)
@_security_page
@_fresh
def identity_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST unlink the account elsewhere."""
    user = _own(request)
    identity = Identity.objects.filter(user=user, pk=pk).first()
    if identity is None:
        raise NotFound(gettext("This account does not exist or is not linked to yours."))
    if not user.has_usable_password():
        raise Forbidden(gettext("This is your only way to log in. Set a password first."))
    if request.method == "POST":
        _record(Kind.IDENTITY, identity.pk, Action.DELETED, values={"user": user.pk})
        identity.delete()
        messages.success(request, gettext("The account is unlinked."))
        return redirect("security")
    return render(request, "accounts/identity_remove.html", {"identity": identity})


# --- sessions ----------------------------------------------------------------------------------


def _sessions(request: HttpRequest) -> list[dict[str, Any]]:
    """The user's sessions that open something, this one first. A changed password has closed
    others, which expire later.
    """
    user = _own(request)
    rows = LoginSession.objects.filter(user=user).select_related("session")[:200]
    own_key, digest = request.session.session_key, user.get_session_auth_hash()
    listed = [
        {"row": row, "is_this": row.session_id == own_key, "where": describe_agent(row.agent)}
        for row in rows
        if row.session.get_decoded().get(HASH_SESSION_KEY) == digest
    ]
    return sorted(listed, key=lambda each: not each["is_this"])


@require_POST
@_security_page
def session_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of the user's sessions."""
    if not end_sessions(user=_own(request), number=pk):
        raise NotFound(gettext("This session does not exist or has ended."))
    messages.success(request, gettext("The session is ended."))
    return redirect("security")


@require_POST
@_security_page
def sessions_end(request: HttpRequest) -> HttpResponse:
    """End all sessions of the user but this one."""
    ended = end_sessions(user=_own(request), besides=request.session.session_key)
    text = ngettext("{number} session is ended.", "{number} sessions are ended.", ended)
    messages.success(request, text.format(number=ended))
    return redirect("security")


_BROWSERS = ("Edg", "OPR", "SamsungBrowser", "Firefox", "Chrome", "Safari", "curl")
_BROWSER_NAMES = {"Edg": "Edge", "OPR": "Opera", "SamsungBrowser": "Samsung Internet"}
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "CrOS", "Linux")
_SYSTEM_NAMES = {"Mac OS X": "macOS", "CrOS": "ChromeOS"}


def describe_agent(agent: str) -> str:
    """“Firefox, Linux”, from a header that every browser writes otherwise."""
    browser = next((each for each in _BROWSERS if f"{each}/" in agent), "")
    system = next((each for each in _SYSTEMS if each in agent), "")
    names = (_BROWSER_NAMES.get(browser, browser), _SYSTEM_NAMES.get(system, system))
    return ", ".join(filter(None, names)) or gettext("unknown browser")
