"""The page of API keys: listed, made, revoked."""

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.choosing import workspace_of
from accounts.forms import NewKeyForm
from accounts.keys import create_key, revoke_key
from accounts.models import ApiKey, Scope
from common.errors import InvalidInput, NotFound
from common.web import page

SHOWN = 200
#: What can be tried at once with a key that has the scope.
EXAMPLES = {
    Scope.READ: "'{site}api/v1/search/?q=hello'",
    Scope.CHAT: "'{site}v1/models'",
    Scope.MEMORY: "'{site}api/v1/memory/facts/'",
    Scope.ADMIN: "'{site}api/v1/keys/'",
    Scope.WRITE: "--json '{{\"name\": \"Notes\"}}' '{site}api/v1/collections/'",
}


@dataclass(frozen=True, slots=True)
class Made:
    """A key that was made just now. This page is the only one that ever shows `secret`."""

    key: ApiKey
    secret: str
    command: str


@require_http_methods(["GET", "HEAD", "POST"])
@page
def index(request: HttpRequest) -> HttpResponse:
    """The keys, and the form for another. The answer to the form shows the secret: there is no
    redirect, because it would have to be kept somewhere until then."""
    form = NewKeyForm(request.POST if request.method == "POST" else None, initial={"days": "90"})
    made = _made(request, form) if form.is_valid() else None
    context = {
        "keys": _keys(request)[:SHOWN],
        "form": form if made is None else NewKeyForm(initial={"days": "90"}),
        "made": made,
    }
    answer = render(request, "accounts/keys.html", context, status=400 if form.errors else 200)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@page
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask whether it shall end; on POST it ends."""
    key = _keys(request).filter(pk=pk).first()
    if key is None:
        raise NotFound("There is no such key, or it is not yours.")
    if request.method == "POST":
        revoke_key(key=key)
        messages.success(request, f"“{key.name}” opens nothing any more.")
        return redirect("keys")
    return render(request, "accounts/key_revoke.html", {"key": key})


def _keys(request: HttpRequest) -> QuerySet[ApiKey]:
    """Those of the workspace that the user may see; those that work come first."""
    workspace = workspace_of(request)
    rows = ApiKey.objects.visible_to(request.user).filter(workspace=workspace)
    return rows.select_related("user").order_by(F("revoked_at").desc(nulls_first=True), "-id")


def _made(request: HttpRequest, form: NewKeyForm) -> Made | None:
    """The new key; None where the form is told why there is none."""
    try:
        key, secret = create_key(
            user=request.user,
            workspace=workspace_of(request),
            name=form.cleaned_data["name"],
            scopes=form.cleaned_data["scopes"],
            expires_at=form.expires_at(),
        )
    except InvalidInput as error:
        form.add_error(error.field or None, str(error))
        return None
    scope = next(scope for scope in EXAMPLES if scope in key.scopes)
    asked = EXAMPLES[scope].format(site=request.build_absolute_uri("/"))
    return Made(key, secret, f"curl -H 'Authorization: Bearer {secret}' {asked}")
