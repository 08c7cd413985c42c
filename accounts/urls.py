"""Logging in and out, the account and its security, choosing a workspace or a language, API keys,
members and groups.
"""

from django.urls import path

from accounts import member_views, views
from accounts import security_views as security
from accounts import sign_in_views as sign_in

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("login/second/", sign_in.second_step, name="second_step"),
    path("login/passkey/", sign_in.passkey_login, name="passkey_login"),
    path("login/passkey/begin/", sign_in.passkey_begin, name="passkey_begin"),
    path("login/oidc/<slug:slug>/", sign_in.oidc_begin, name="oidc_begin"),
    path("login/oidc/<slug:slug>/callback/", sign_in.oidc_callback, name="oidc_callback"),
    path("login/saml/<slug:slug>/", sign_in.saml_begin, name="saml_begin"),
    path("login/saml/<slug:slug>/answer/", sign_in.saml_answer, name="saml_answer"),
    path("login/saml/<slug:slug>/finish/", sign_in.saml_finish, name="saml_finish"),
    path("login/saml/<slug:slug>/metadata/", sign_in.saml_metadata, name="saml_metadata"),
    path("login/link/<str:user_part>/<str:token>/", sign_in.link_login, name="link_login"),
    path("logout/", views.Logout.as_view(), name="logout"),
    path("workspaces/choose/", views.switch_workspace, name="workspace_choose"),
    path("language/", views.choose_language, name="language_choose"),
    path("texts.js", views.JavaScriptTexts.as_view(), name="javascript_texts"),
    path("account/security/", security.security, name="security"),
    path("account/confirm/", security.confirm, name="security_confirm"),
    path("account/password/", security.password, name="password"),
    path("account/authenticator/", security.authenticator, name="authenticator"),
    path("account/passkeys/new/", security.passkey, name="passkey_new"),
    path("account/recovery-codes/", security.recovery_codes, name="recovery_codes"),
    path("account/factors/<int:pk>/remove/", security.factor_remove, name="factor_remove"),
    path("account/identities/<int:pk>/remove/", security.identity_remove, name="identity_remove"),
    path("account/sessions/<int:pk>/end/", security.session_end, name="session_end"),
    path("account/sessions/end-others/", security.sessions_end, name="sessions_end"),
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
