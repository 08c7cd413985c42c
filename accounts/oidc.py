"""Signing in by OpenID Connect: the code flow with PKCE. Begin with `authorization_redirect`.

Authlib runs the protocol. It checks the state, sends nonce and code verifier, and checks signature,
expiry and nonce of the ID token; that issuer and audience are the right ones it checks where it is
told to, which is done here (docs/decisions/0075). The provider's description and keys are read at
every sign-in, so that a change of its keys is noticed at once.
"""

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from accounts.external_people import ExternalPerson, refused_answer
from accounts.providers import Provider
from accounts.sign_in import Refusal, SignInRefused
from common.errors import RagsiteError

if TYPE_CHECKING:
    from authlib.integrations.django_client import (  # type: ignore[import-untyped]
        DjangoOAuth2App,
    )

TIMEOUT_SECONDS = 5.0
#: Between the clocks of two servers.
LEEWAY_SECONDS = 60
#: Signed by a key that the provider alone has. A secret that both have would let this site sign.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)


class ProviderUnavailable(RagsiteError):
    """The provider does not answer, or not as one."""

    code = "provider_unavailable"
    status = 503


def authorization_redirect(
    request: HttpRequest, provider: Provider, *, next_url: str
) -> HttpResponse:
    """To the provider's page. State, nonce and code verifier stay in the session. Raises
    ProviderUnavailable.
    """
    with _Conversation(provider) as client:
        callback = request.build_absolute_uri(reverse("oidc_callback", args=[provider.slug]))
        made = client.create_authorization_url(callback)
        client.save_authorize_data(request, redirect_uri=callback, next=next_url, **made)
    return redirect(made["url"])


def authenticate(request: HttpRequest, provider: Provider) -> tuple[ExternalPerson, str]:
    """Who came back from the provider, and the page that they wanted. The state is used up,
    whatever comes of it. Raises SignInRefused and ProviderUnavailable.
    """
    with _Conversation(provider) as client:
        state = request.GET.get("state", "")
        begun = client.framework.get_state_data(request.session, state)
        if begun is None:
            raise SignInRefused(
                Refusal.ANSWER,
                gettext("This sign-in was started elsewhere or has expired. Sign in again."),
            )
        token = client.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": client.server_metadata["issuer"]},
                "aud": {"essential": True, "value": provider.client_id},
            },
            leeway=LEEWAY_SECONDS,
        )
        claims = token.get("userinfo")
        if not claims or not claims["sub"]:
            raise refused_answer(provider)
        wanted = {provider.username, provider.email, provider.groups} - {""}
        if not wanted <= set(claims) and client.server_metadata.get("userinfo_endpoint"):
            more = client.userinfo(token=token)
            if more.get("sub") != claims["sub"]:
                raise refused_answer(provider)
            claims = {**more, **claims}
    return _person(provider, claims), str(begun.get("next", ""))


class _Conversation:
    """Authlib's client of one provider, and its errors in our words."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __enter__(self) -> "DjangoOAuth2App":
        from authlib.integrations.django_client import (  # noqa: PLC0415 (few processes need it)
            DjangoIntegration,
            DjangoOAuth2App,
        )

        provider = self._provider
        scopes = dict.fromkeys(["openid", *provider.scopes])
        client = DjangoOAuth2App(
            DjangoIntegration(f"oidc-{provider.slug}"),
            f"oidc-{provider.slug}",
            client_id=provider.client_id,
            client_secret=provider.client_secret or None,
            server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": " ".join(scopes),
                "code_challenge_method": "S256",
                "default_timeout": TIMEOUT_SECONDS,
                **({} if provider.client_secret else {"token_endpoint_auth_method": "none"}),
            },
        )
        try:
            metadata = client.load_server_metadata()
        except Exception as error:
            self.__exit__(type(error), error, None)
            raise
        if str(metadata.get("issuer", "")).rstrip("/") != provider.issuer.rstrip("/"):
            raise refused_answer(provider)
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        allowed = [each for each in offered if each in ALGORITHMS]
        if not allowed:
            raise refused_answer(provider)
        metadata["id_token_signing_alg_values_supported"] = allowed
        return client

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from authlib.integrations.django_client import OAuthError  # noqa: PLC0415
        from joserfc.errors import JoseError  # noqa: PLC0415
        from requests import RequestException  # noqa: PLC0415

        if isinstance(error, OAuthError) and error.error == "access_denied":
            message = gettext("The sign-in was canceled. You can sign in again.")
            raise SignInRefused(Refusal.CANCELLED, message) from error
        if isinstance(error, RequestException):
            raise ProviderUnavailable(
                gettext(
                    "{provider} does not respond. Try again in a minute. Owners can log"
                    " in with their password."
                ).format(provider=self._provider.label)
            ) from error
        if isinstance(
            error, (OAuthError, JoseError, ValueError, KeyError, TypeError, RuntimeError)
        ):
            raise refused_answer(self._provider) from error


def _person(provider: Provider, claims: dict[str, Any]) -> ExternalPerson:
    def text(name: str) -> str:
        value = claims.get(name)
        return value.replace("\0", "").strip() if isinstance(value, str) else ""

    groups = None
    if provider.groups:
        # A server that names no groups any more has taken the person out of all.
        told = claims.get(provider.groups) or []
        told = [told] if isinstance(told, str) else told
        groups = frozenset(str(each).replace("\0", "") for each in told if each)
    return ExternalPerson(
        subject=str(claims["sub"]),
        username=text(provider.username),
        email=text(provider.email),
        is_email_verified=str(claims.get("email_verified")).lower() == "true",
        first_name=text("given_name"),
        last_name=text("family_name"),
        groups=groups,
    )
