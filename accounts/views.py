"""Pages: login and logout, choice of the workspace and the language, API keys."""

from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_http_methods, require_POST
from django.views.i18n import JavaScriptCatalog

from accounts.api_keys import create_key, revoke_key
from accounts.credentials import SignInMethod, has_second_factor
from accounts.current_workspace import request_workspace, select_workspace
from accounts.forms import LoginForm, NewKeyForm
from accounts.models import ApiKey, Scope, User
from accounts.providers import providers
from accounts.services import can_edit, set_language
from accounts.sign_in import asks_second_factor, begin_second_step, sign_in
from common.errors import InvalidInput, NotFound
from common.web import errors_in_form, login_required_page, with_passkeys


@method_decorator(with_passkeys, "dispatch")
class Login(views.LoginView):
    """The only page that anonymous visitors see."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def form_invalid(self, form: Any) -> HttpResponse:
        answer = super().form_invalid(form)
        if form.retry_after is not None:
            answer.status_code = 429
            answer.headers["Retry-After"] = str(form.retry_after)
        return answer

    def form_valid(self, form: Any) -> HttpResponse:
        """Log in, or ask for the second factor."""
        user = form.get_user()
        if asks_second_factor(user) and has_second_factor(user):
            begin_second_step(self.request, user, next_url=self.get_success_url())
            return redirect("second_step")
        sign_in(self.request, user, method=SignInMethod.PASSWORD)
        answer = redirect(self.get_success_url())
        keep_language(answer, user.language)
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With the other ways in. Where passwords are for owners, they come last and folded."""
        return {
            **super().get_context_data(**kwargs),
            "providers": list(providers()),
            "has_passkeys": settings.SECOND_FACTOR != "off",
            "folds_password": settings.LOCAL_LOGIN != "everyone"
            and "local" not in self.request.GET
            and self.request.method == "GET",
        }


class Logout(views.LogoutView):
    """Ends the session; Django takes POST only."""


@require_POST
@login_required_page
def switch_workspace(request: HttpRequest) -> HttpResponse:
    """Switch to the posted workspace and redirect to `next`. The form omits `next` where that page
    shows an object of the former workspace.
    """
    slug = request.POST.get("workspace", "")
    if not slug:
        raise InvalidInput(gettext("No workspace was chosen. Choose one from the menu."))
    chosen = select_workspace(request, slug=slug)
    may_edit = can_edit(user=request.user, workspace=chosen)
    messages.success(
        request,
        gettext("The workspace is now {chosen}.").format(chosen=chosen)
        if may_edit
        else gettext(
            "The workspace is now {chosen}. You may read it; an owner can give you the editor role."
        ).format(chosen=chosen),
    )
    return _redirect_to_next(request)


def _redirect_to_next(request: HttpRequest) -> HttpResponse:
    """To the posted `next` where it is an address of this site, else to the start."""
    target = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        target, {request.get_host()}, require_https=request.is_secure()
    )
    return redirect(target if is_ours else "search")


@require_POST
@login_required_page
def choose_language(request: HttpRequest) -> HttpResponse:
    """Keep the posted language for the user, and redirect to `next`. Empty: the browser's."""
    language = request.POST.get("language", "")
    set_language(user=cast("User", request.user), language=language)
    answer = _redirect_to_next(request)
    keep_language(answer, language)
    return answer


def keep_language(answer: HttpResponse, language: str) -> None:
    """Have the browser ask for pages in the language of the account; none: in its own."""
    name = settings.LANGUAGE_COOKIE_NAME
    if not language:
        answer.delete_cookie(name, samesite="Lax")
        return
    answer.set_cookie(
        name,
        language,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
        samesite="Lax",
    )


@method_decorator(cache_control(max_age=3600), "dispatch")
class JavaScriptTexts(JavaScriptCatalog):
    """The texts of scripts in the language of the page, for `gettext` and `ngettext` there."""

    domain = "djangojs"

    def get_paths(self, packages: list[str]) -> list[str]:
        return [str(path) for path in settings.LOCALE_PATHS]


LISTED_KEYS = 200
#: Example requests for a key that has the scope.
EXAMPLES = {
    Scope.READ: "'{site}api/v1/search/?q=hello'",
    Scope.CHAT: "'{site}v1/models'",
    Scope.MEMORY: "'{site}api/v1/memory/facts/'",
    Scope.ADMIN: "'{site}api/v1/keys/'",
    Scope.WRITE: "--json '{{\"name\": \"Notes\"}}' '{site}api/v1/collections/'",
}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def api_keys(request: HttpRequest) -> HttpResponse:
    """List of keys and the form for a new one. The answer to the form shows the secret without a
    redirect, because it would have to be stored until then.
    """
    workspace = request_workspace(request)
    new: dict[str, Any] = {"initial": {"days": "90"}, "workspace": workspace}
    form = NewKeyForm(request.POST if request.method == "POST" else None, **new)
    made = _create_key(request, form) if form.is_valid() else None
    keys = list(_visible_keys(request)[:LISTED_KEYS])
    names = dict(workspace.collections.using(workspace.alias).values_list("pk", "name"))
    for key in keys:
        key.collection_names = [names[pk] for pk in key.collections if pk in names]
    context = {
        "keys": keys,
        "form": form if made is None else NewKeyForm(**new),
        "made": made,
    }
    answer = render(request, "accounts/keys.html", context, status=400 if form.errors else 200)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def revoke_api_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST revoke the key."""
    key = _visible_keys(request).filter(pk=pk).first()
    if key is None:
        raise NotFound(gettext("This key does not exist or is not yours."))
    if request.method == "POST":
        revoke_key(key=key)
        messages.success(request, gettext("“{key_name}” is revoked.").format(key_name=key.name))
        return redirect("keys")
    return render(request, "accounts/key_revoke.html", {"key": key})


def _visible_keys(request: HttpRequest) -> QuerySet[ApiKey]:
    """Visible keys of the workspace, usable ones first."""
    workspace = request_workspace(request)
    rows = ApiKey.objects.visible_to(request.user).filter(workspace=workspace)
    return rows.select_related("user").order_by(F("revoked_at").desc(nulls_first=True), "-id")


def _create_key(request: HttpRequest, form: NewKeyForm) -> dict[str, Any] | None:
    """The key, its secret, which no other page ever shows, and an example; None where it is
    refused, with the reason added to the form."""
    with errors_in_form(form):
        key, secret = create_key(
            user=request.user,
            workspace=request_workspace(request),
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            expires_at=form.expires_at(),
            collections=form.cleaned_data.get("collections", ()),
        )
    if form.errors:
        return None
    scope = next(scope for scope in EXAMPLES if scope in key.scopes)
    asked = EXAMPLES[scope].format(site=request.build_absolute_uri("/"))
    command = f"curl -H 'Authorization: Bearer {secret}' {asked}"
    return {"key": key, "secret": secret, "command": command}
