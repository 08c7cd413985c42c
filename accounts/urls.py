"""Logging in and out, choosing a workspace or a language, API keys, members and groups."""

from django.urls import path

from accounts import member_views, views

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", views.Logout.as_view(), name="logout"),
    path("workspaces/choose/", views.switch_workspace, name="workspace_choose"),
    path("language/", views.choose_language, name="language_choose"),
    path("texts.js", views.JavaScriptTexts.as_view(), name="javascript_texts"),
    path("keys/", views.api_keys, name="keys"),
    path("keys/<int:pk>/revoke/", views.revoke_api_key, name="key_revoke"),
    path("members/", member_views.members, name="members"),
    path("members/<int:pk>/", member_views.member, name="member"),
    path("members/<int:pk>/remove/", member_views.member_remove, name="member_remove"),
    path("groups/new/", member_views.group_new, name="group_new"),
    path("groups/<int:pk>/", member_views.group, name="group"),
    path("groups/<int:pk>/delete/", member_views.group_delete, name="group_delete"),
    path("invitations/<int:pk>/revoke/", member_views.invitation_revoke, name="invitation_revoke"),
    path("join/<str:token>/", member_views.join, name="join"),
]
