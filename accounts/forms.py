"""The forms of a login and its second step, of second factors, and of a new API key."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from accounts.api_keys import MAX_NAME_CHARACTERS
from accounts.credentials import SignInMethod
from accounts.models import Scope, Workspace
from accounts.rate_limits import TooManyRequests
from accounts.sign_in import SignInRefused, check_password_allowed, record_refusal

SCOPE_LABELS = {
    Scope.READ: gettext_lazy("read documents, search, see the graph"),
    Scope.WRITE: gettext_lazy("add, change and delete documents and the graph"),
    Scope.MEMORY: gettext_lazy("read and change your memory"),
    Scope.CHAT: gettext_lazy("ask chat models, run pipelines and tools"),
    Scope.ADMIN: gettext_lazy("create and revoke API keys"),
}
LIFETIMES = {
    "30": gettext_lazy("30 days"),
    "90": gettext_lazy("90 days"),
    "365": gettext_lazy("a year"),
    "": gettext_lazy("until revoked"),
}


class LoginForm(AuthenticationForm):
    """Name and password. `retry_after` is the number of seconds until the next attempt is
    allowed.
    """

    retry_after: int | None = None

    def clean(self) -> dict[str, Any]:
        try:
            return super().clean()
        except TooManyRequests as error:
            self.retry_after = error.retry_after
            raise forms.ValidationError(str(error), code=error.code) from error

    def confirm_login_allowed(self, user: Any) -> None:
        """Refuse a disallowed login only after the password was correct."""
        super().confirm_login_allowed(user)
        try:
            check_password_allowed(user)
        except SignInRefused as error:
            record_refusal(reason=error.reason, method=SignInMethod.PASSWORD, user=user)
            raise forms.ValidationError(str(error), code=error.code) from error


class CodeForm(forms.Form):
    """A code of an authenticator app, or a recovery code."""

    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "autocapitalize": "off", "spellcheck": "false"}
        ),
    )


class PasswordForm(forms.Form):
    """The user's password, once more."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class NewPasskeyForm(forms.Form):
    """A passkey's name, and what the browser answers."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME_CHARACTERS,
        help_text=gettext_lazy("The device, such as “laptop” or “blue key”."),
    )
    answer = forms.CharField(max_length=20_000, widget=forms.HiddenInput)


class NewKeyForm(forms.Form):
    """Name, scopes and lifetime of a new API key."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME_CHARACTERS,
        help_text=gettext_lazy("The program that uses it, such as “nightly import”."),
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=[
            (scope.value, format_lazy("{}: {}", scope.value, text))
            for scope, text in SCOPE_LABELS.items()
        ],
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Limited to your own rights."),
        error_messages={"required": gettext_lazy("Choose at least one.")},
    )
    days = forms.ChoiceField(
        label=gettext_lazy("Valid for"), choices=list(LIFETIMES.items()), required=False
    )

    collections = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Only these collections"),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy(
            "None selected: all collections. If some are selected, the key gives no"
            " access to memory, conversations or manual entries of the graph."
        ),
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = workspace.collections.using(workspace.alias).order_by("name")
        choices = list(rows.values_list("pk", "name"))
        self.fields["collections"].choices = choices  # type: ignore[attr-defined]
        if not choices:
            del self.fields["collections"]

    def expires_at(self) -> datetime | None:
        """Expiry of the valid form; None for never."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None
