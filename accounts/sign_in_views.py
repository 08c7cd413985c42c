"""Pages of signing in besides the login page: the second step, passkeys, other servers, one-time
links."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import oidc, saml
from accounts.credentials import SecondFactor, SignInMethod
from accounts.external_people import ExternalPerson, external_user
from accounts.forms import CodeForm
from accounts.models import User
from accounts.providers import Provider, find_provider
from accounts.rate_limits import LoginAttempt, TooManyRequests
from accounts.second_factors import (
    WrongFactor,
    confirm_code,
    confirm_passkey,
    passkey_options,
)
from accounts.sign_in import (
    Refusal,
    SignInRefused,
    check_password_allowed,
    expiry,
    pending_user,
    record_refusal,
    sign_in,
    user_of_link,
)
from accounts.views import keep_language
from common.errors import RagsiteError
from common.web import with_passkeys

_Page = Callable[..., HttpResponse]


def _sign_in_page(view: _Page) -> _Page:
    """Decorator: an error becomes a page that leads back to the login."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except RagsiteError as error:
            answer = render(
                request,
                "accounts/sign_in_failed.html",
                {"message": str(error), "status": error.status},
                status=error.status,
            )
            if error.retry_after is not None:
                answer.headers["Retry-After"] = str(error.retry_after)
            return answer

    return never_cache(guarded)


def _let_in(
    request: HttpRequest,
    user: User,
    *,
    method: SignInMethod,
    next_url: str,
    hours: float = 0,
) -> HttpResponse:
    sign_in(request, user, method=method, is_two_factor=True, expires_at=expiry(hours))
    answer = redirect(next_url or settings.LOGIN_REDIRECT_URL)
    keep_language(answer, user.language)
    return answer


def _wanted_page(request: HttpRequest, wanted: str) -> str:
    """An address of this site, else its start."""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else resolve_url(settings.LOGIN_REDIRECT_URL)


# --- second step -------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@with_passkeys
@_sign_in_page
def second_step(request: HttpRequest) -> HttpResponse:
    """Ask whoever has shown their password for a code or a passkey."""
    pending = pending_user(request)
    if pending is None:
        return redirect("login")
    user, next_url = pending
    form = CodeForm(request.POST if "code" in request.POST else None)
    message, status = "", 200
    try:
        if answer := request.POST.get("answer", ""):
            confirm_passkey(request, answer, user)
            return _let_in(request, user, method=SignInMethod.PASSWORD, next_url=next_url)
        if form.is_valid():
            confirm_code(request, user, form.cleaned_data["code"])
            return _let_in(request, user, method=SignInMethod.PASSWORD, next_url=next_url)
    except (WrongFactor, TooManyRequests) as error:
        if isinstance(error, WrongFactor):
            record_refusal(reason=Refusal.SECOND_FACTOR, method=SignInMethod.PASSWORD, user=user)
        message, status = str(error), error.status
    kinds = set(SecondFactor.objects.filter(user=user).values_list("kind", flat=True))
    context = {
        "form": form,
        "message": message,
        "has_app": SecondFactor.Kind.TOTP in kinds,
        "has_recovery_codes": SecondFactor.Kind.RECOVERY in kinds,
        "options": passkey_options(request, user) if SecondFactor.Kind.PASSKEY in kinds else "",
    }
    return render(request, "accounts/second_step.html", context, status=status)


# --- passkeys in place of a password -----------------------------------------------------------


@require_POST
@_sign_in_page
def passkey_begin(request: HttpRequest) -> HttpResponse:
    """What a passkey is to sign, as JSON, for `static/js/passkeys.js`."""
    _check_passkeys_on()
    LoginAttempt(account=None, request=request).check()
    options = passkey_options(request)
    if not request.user.is_authenticated:
        request.session.set_expiry(600)
    return HttpResponse(options, content_type="application/json")


@require_POST
@_sign_in_page
def passkey_login(request: HttpRequest) -> HttpResponse:
    """Log in whoever the passkey belongs to."""
    _check_passkeys_on()
    try:
        user = confirm_passkey(request, request.POST.get("answer", ""))
    except WrongFactor:
        record_refusal(reason=Refusal.SECOND_FACTOR, method=SignInMethod.PASSKEY)
        raise
    try:
        check_password_allowed(user)
    except SignInRefused as error:
        record_refusal(reason=error.reason, method=SignInMethod.PASSKEY, user=user)
        raise
    next_url = _wanted_page(request, request.POST.get("next", ""))
    return _let_in(request, user, method=SignInMethod.PASSKEY, next_url=next_url)


def _check_passkeys_on() -> None:
    if settings.SECOND_FACTOR == "off":
        raise Http404


# --- other servers -----------------------------------------------------------------------------


def _begin(
    request: HttpRequest, provider: Provider, redirect_to: Callable[..., HttpResponse]
) -> HttpResponse:
    """The answer that leads to the provider's page; what the session keeps for it lasts an hour."""
    next_url = _wanted_page(request, request.GET.get("next", ""))
    LoginAttempt(account=None, request=request).check()
    answer = redirect_to(request, provider, next_url=next_url)
    if not request.user.is_authenticated:
        request.session.set_expiry(3600)
    return answer


@require_GET
@_sign_in_page
def oidc_begin(request: HttpRequest, slug: str) -> HttpResponse:
    """To the provider's page."""
    return _begin(request, _provider(SignInMethod.OIDC, slug), oidc.authorization_redirect)


@require_GET
@_sign_in_page
def oidc_callback(request: HttpRequest, slug: str) -> HttpResponse:
    """Back from the provider's page."""
    provider = _provider(SignInMethod.OIDC, slug)
    return _external_sign_in(request, provider, lambda: oidc.authenticate(request, provider))


@require_GET
@_sign_in_page
def saml_begin(request: HttpRequest, slug: str) -> HttpResponse:
    """To the page of a server that speaks SAML."""
    return _begin(request, _provider(SignInMethod.SAML, slug), saml.authentication_redirect)


@csrf_exempt
@require_POST
@_sign_in_page
def saml_answer(request: HttpRequest, slug: str) -> HttpResponse:
    """A form of the server's page brings the answer, without cookies of this site."""
    provider = _provider(SignInMethod.SAML, slug)
    LoginAttempt(account=None, request=request).check()
    return saml.receive_answer(request, provider)


@require_GET
@_sign_in_page
def saml_finish(request: HttpRequest, slug: str) -> HttpResponse:
    """The browser comes for the answer that it brought."""
    provider = _provider(SignInMethod.SAML, slug)
    return _external_sign_in(request, provider, lambda: saml.authenticate(request, provider))


@require_GET
def saml_metadata(request: HttpRequest, slug: str) -> HttpResponse:
    """What the server must know of this site."""
    provider = _provider(SignInMethod.SAML, slug)
    return HttpResponse(saml.metadata(request, provider), content_type="application/xml")


def _external_sign_in(
    request: HttpRequest, provider: Provider, authenticate: Callable[[], tuple[ExternalPerson, str]]
) -> HttpResponse:
    """Let in whom the provider vouches for. Refusals count as failed attempts of the address."""
    attempt = LoginAttempt(account=None, request=request)
    attempt.check()
    try:
        person, next_url = authenticate()
        user = external_user(provider=provider, person=person)
    except SignInRefused as error:
        record_refusal(reason=error.reason, method=provider.method)
        if error.reason == Refusal.ANSWER:
            attempt.fail()
        raise
    next_url = _wanted_page(request, next_url)
    hours = provider.session_hours
    return _let_in(request, user, method=provider.method, next_url=next_url, hours=hours)


def _provider(method: SignInMethod, slug: str) -> Provider:
    provider = find_provider(method, slug)
    if provider is None:
        raise Http404
    return provider


# --- one-time links ----------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@_sign_in_page
def link_login(request: HttpRequest, user_part: str, token: str) -> HttpResponse:
    """A button, so that nothing that only looks at the address uses it up; and the login."""
    attempt = LoginAttempt(account=None, request=request)
    attempt.check()
    with transaction.atomic():
        user = user_of_link(user_part, token)
        if user is not None and request.method == "POST":
            return _let_in(
                request, user, method=SignInMethod.LINK, next_url=resolve_url("security")
            )
    if user is None:
        attempt.fail()
        record_refusal(reason=Refusal.LINK, method=SignInMethod.LINK)
        raise SignInRefused(
            Refusal.LINK,
            gettext(
                "This link was already used or is older than 15 minutes. The operator of"
                " this site can create another one with manage.py loginlink."
            ),
        )
    return render(request, "accounts/link_login.html", {"for_user": user})
