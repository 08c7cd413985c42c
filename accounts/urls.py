"""Logging in and out, choosing a workspace, and API keys."""

from django.urls import path

from accounts.views import keys, login, workspaces

urlpatterns = [
    path("login/", login.Login.as_view(), name="login"),
    path("logout/", login.Logout.as_view(), name="logout"),
    path("workspaces/choose/", workspaces.choose, name="workspace_choose"),
    path("keys/", keys.index, name="keys"),
    path("keys/<int:pk>/revoke/", keys.revoke, name="key_revoke"),
]
