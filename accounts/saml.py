"""Signing in by SAML 2.0: requests by redirect, answers by POST. Begin with
`authentication_redirect`.

python3-saml (requirements-saml.txt) reads and checks the answers: the signature of the assertion by
the certificate in the server's metadata, its times, audience, recipient, and that it answers a
request of this browser.
"""

import secrets
from pathlib import Path
from time import time
from typing import Any

from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from accounts.external_people import ExternalPerson, refused_answer
from accounts.providers import Provider
from accounts.sign_in import Refusal, SignInRefused

#: An answer waits so long for the browser that brought it, and a request for its answer.
ANSWER_SECONDS, REQUEST_SECONDS = 60, 600
MAX_ANSWER_CHARACTERS = 500_000
_TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"


def authentication_redirect(
    request: HttpRequest, provider: Provider, *, next_url: str
) -> HttpResponse:
    """To the server's page. The number of the request stays in the session."""
    auth = _auth(request, provider)
    target = auth.login(return_to=request.build_absolute_uri("/"))
    request.session[_key(provider)] = {
        "id": auth.get_last_request_id(),
        "next": next_url,
        "at": time(),
    }
    return redirect(target)


def receive_answer(request: HttpRequest, provider: Provider) -> HttpResponse:
    """Keep the posted answer for a moment, and have the browser come back for it. A form of another
    site brings no cookie of this one along; the redirection does.
    """
    answer = request.POST.get("SAMLResponse", "")
    if not answer or len(answer) > MAX_ANSWER_CHARACTERS:
        raise refused_answer(provider)
    token = secrets.token_urlsafe(16)
    cache.set(f"saml-answer:{token}", answer, ANSWER_SECONDS)
    return redirect(f"{reverse('saml_finish', args=[provider.slug])}?answer={token}")


def authenticate(request: HttpRequest, provider: Provider) -> tuple[ExternalPerson, str]:
    """Who came back from the server, and the page that they wanted. Request and answer are used up,
    whatever comes of them. Raises SignInRefused.
    """
    begun = request.session.pop(_key(provider), None)
    key = f"saml-answer:{request.GET.get('answer', '')[:100]}"
    answer = cache.get(key)
    is_ours = begun is not None and 0 <= time() - begun["at"] <= REQUEST_SECONDS
    if not cache.delete(key) or not answer or not is_ours:
        raise SignInRefused(
            Refusal.ANSWER,
            gettext("This sign-in was started elsewhere or has expired. Sign in again."),
        )
    auth = _auth(request, provider, answer=answer)
    from onelogin.saml2.errors import (  # type: ignore[import-untyped]  # noqa: PLC0415
        OneLogin_Saml2_Error,
        OneLogin_Saml2_ValidationError,
    )

    try:
        auth.process_response(request_id=begun["id"])
    except (OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError, ValueError, SyntaxError) as error:
        raise refused_answer(provider) from error
    is_right = auth.is_authenticated() and not auth.get_errors()
    # A name that is another one each time would make an account each time.
    if not is_right or auth.get_nameid_format() == _TRANSIENT:
        raise refused_answer(provider)
    return _person(provider, auth), str(begun["next"])


def metadata(request: HttpRequest, provider: Provider) -> str:
    """What the server must know of this site, as XML."""
    settings = _auth(request, provider).get_settings()
    found: bytes | str = settings.get_sp_metadata()
    return found.decode() if isinstance(found, bytes) else found


def _auth(request: HttpRequest, provider: Provider, *, answer: str = "") -> Any:
    """The library's object for one request."""
    try:
        from onelogin.saml2.auth import (  # type: ignore[import-untyped]  # noqa: PLC0415
            OneLogin_Saml2_Auth,
        )
        from onelogin.saml2.idp_metadata_parser import (  # type: ignore[import-untyped]  # noqa: PLC0415
            OneLogin_Saml2_IdPMetadataParser,
        )
    except ImportError as error:
        raise ImproperlyConfigured(
            "SAML needs further packages: pip install -r requirements-saml.txt"
        ) from error
    described = OneLogin_Saml2_IdPMetadataParser.parse(Path(provider.metadata).read_bytes())
    recipient = reverse("saml_answer", args=[provider.slug])
    options = {
        "strict": True,
        "sp": {
            "entityId": request.build_absolute_uri(reverse("saml_metadata", args=[provider.slug])),
            "assertionConsumerService": {"url": request.build_absolute_uri(recipient)},
        },
        "idp": described["idp"],
        "security": {
            "wantAssertionsSigned": True,
            "rejectUnsolicitedResponsesWithInResponseTo": True,
            "rejectDeprecatedAlgorithm": True,
            "requestedAuthnContext": False,
            "allowSingleLabelDomains": True,
        },
    }
    sent = {
        "https": "on" if request.is_secure() else "off",
        "http_host": request.get_host(),
        "script_name": recipient,
        "get_data": {},
        "post_data": {"SAMLResponse": answer} if answer else {},
    }
    return OneLogin_Saml2_Auth(sent, options)


def _key(provider: Provider) -> str:
    return f"saml-{provider.slug}"


def _person(provider: Provider, auth: Any) -> ExternalPerson:
    attributes = {**auth.get_friendlyname_attributes(), **auth.get_attributes()}

    def first(name: str) -> str:
        values = [value for value in attributes.get(name, []) if isinstance(value, str)]
        return values[0].replace("\0", "").strip() if values else ""

    subject = str(auth.get_nameid() or "")
    email = first(provider.email) if provider.email else ""
    groups = None
    if provider.groups:
        told = attributes.get(provider.groups, [])
        groups = frozenset(str(each) for each in told if each)
    return ExternalPerson(
        subject=subject,
        username=first(provider.username) if provider.username else subject,
        email=email,
        is_email_verified=bool(email),  # the firm's own server says so, and signs it
        first_name=first("givenName"),
        last_name=first("sn"),
        groups=groups,
    )
