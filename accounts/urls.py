"""Logging in and out, choosing a workspace, and API keys."""

from django.urls import path

from accounts import views

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", views.Logout.as_view(), name="logout"),
    path("workspaces/choose/", views.switch_workspace, name="workspace_choose"),
    path("keys/", views.api_keys, name="keys"),
    path("keys/<int:pk>/revoke/", views.revoke_api_key, name="key_revoke"),
]
