"""Logging in and out."""

from typing import Any

from django.contrib.auth import views
from django.http import HttpResponse

from accounts.forms import LoginForm


class Login(views.LoginView):
    """The one page that strangers see."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def form_invalid(self, form: Any) -> HttpResponse:
        answer = super().form_invalid(form)
        if form.retry_after is not None:
            answer.status_code = 429
            answer.headers["Retry-After"] = str(form.retry_after)
        return answer


class Logout(views.LogoutView):
    """Ends the session; Django takes POST only."""
