"""Logging in and out, choosing a workspace or a language, and API keys."""

from django.urls import path

from accounts import views

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", views.Logout.as_view(), name="logout"),
    path("workspaces/choose/", views.switch_workspace, name="workspace_choose"),
    path("language/", views.choose_language, name="language_choose"),
    path("texts.js", views.JavaScriptTexts.as_view(), name="javascript_texts"),
    path("keys/", views.api_keys, name="keys"),
    path("keys/<int:pk>/revoke/", views.revoke_api_key, name="key_revoke"),
]
