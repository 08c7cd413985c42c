"""Logging in and out."""

from django.contrib.auth import views


class Login(views.LoginView):
    """The one page that strangers see."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True


class Logout(views.LogoutView):
    """Ends the session; Django takes POST only."""
