"""Signing in by SAML: answers that a server's key signed, and many that are wrong."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from django.test import Client
from lxml import etree

from accounts.audit import Action
from accounts.models import Change, Identity, User, Workspace

saml_utils = pytest.importorskip("onelogin.saml2.utils")
pytestmark = pytest.mark.django_db
SERVER = "https://login.firm.example/saml"
SITE = "http://testserver/login/saml/firm"
XML = {file.stem: file.read_text() for file in Path(__file__).with_name("saml").iterdir()}
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


def make_key() -> tuple[str, str]:
    """A private key and its certificate, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "login.firm.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()


KEY, OTHER_KEY = make_key(), make_key()


@pytest.fixture(autouse=True)
def server(settings: Any, tmp_path: Path) -> None:
    """The site knows the server by its metadata."""
    settings.LOGIN_ADDRESS_RATE = "0"  # so many failures come from one address
    Workspace.objects.create(slug="lab", name="The lab")
    body = "".join(KEY[1].splitlines()[1:-1])
    path = tmp_path / "metadata.xml"
    path.write_text(XML["metadata"].format(issuer=SERVER, certificate=body))
    settings.SAML_PROVIDERS = {
        "firm": {
            "metadata": str(path),
            "name": "Firm",
            "username": "uid",
            "email": "mail",
            "groups": "memberOf",
            "workspace": "lab",
        }
    }


def begin(client: Client, **query: str) -> str:
    """The number of the request that the server gets."""
    answer = client.get("/login/saml/firm/", query)
    url = urlsplit(answer.url)
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{SERVER}/sso"
    packed = b64decode(parse_qs(url.query)["SAMLRequest"][0])
    request = etree.fromstring(zlib.decompress(packed, -15))
    assert request.get("AssertionConsumerServiceURL") == f"{SITE}/answer/"
    return str(request.get("ID"))


def make_answer(request: str, *, key: tuple[str, str] | None = KEY, **changes: Any) -> str:
    """The server's answer; what is signed is the assertion."""
    now = datetime.now(UTC)

    def at(seconds: int) -> str:
        return (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    told = {
        "now": at(0),
        "since": at(-60),
        "until": at(300),
        "issuer": SERVER,
        "audience": f"{SITE}/metadata/",
        "recipient": f"{SITE}/answer/",
        "request": request,
        "subject": "A-4711",
        "format": PERSISTENT,
        "status": "Success",
        **{name: at(value) if isinstance(value, int) else value for name, value in changes.items()},
    }
    assertion = XML["assertion"].format(**told)
    if key is not None:
        signed = saml_utils.OneLogin_Saml2_Utils.add_sign(assertion, *key)
        assertion = signed.decode() if isinstance(signed, bytes) else signed
    return XML["answer"].format(**told, assertion=assertion)


def send(client: Client, xml: str) -> Any:
    """As the server's page has the browser do: a form without cookies, then a redirection."""
    coded = b64encode(xml.encode()).decode()
    posted = Client(enforce_csrf_checks=True).post(
        "/login/saml/firm/answer/", {"SAMLResponse": coded}
    )
    assert posted.status_code == 302, posted.content
    return client.get(posted.url)


def test_a_signed_answer_leads_in_and_to_the_page(client: Client) -> None:
    request = begin(client, next="/documents/")

    assert send(client, make_answer(request)).url == "/documents/"
    user = User.objects.get()
    assert (user.username, user.email) == ("anna", "anna@firm.example")
    identity = Identity.objects.get()
    assert (identity.issuer, identity.subject) == ("saml:firm", "A-4711")
    assert identity.groups == ["crane", "harbour"]
    assert client.get("/documents/").status_code == 200


def tampered(xml: str) -> str:
    return xml.replace(">A-4711<", ">A-1<")


def wrapped(xml: str) -> str:
    """A second, unsigned assertion before the signed one."""
    start, end = xml.index("<saml:Assertion"), xml.index("</saml:Assertion>") + 17
    forged = xml[start:end].replace('ID="_a1"', 'ID="_a2"').replace(">A-4711<", ">A-1<")
    return xml[:start] + forged + xml[start:]


def with_comment(xml: str) -> str:
    """A comment within the signed name, which some readers end it at."""
    return xml.replace(">A-4711<", ">A-4711<!-- x -->.evil<")


@pytest.mark.parametrize(
    "changes",
    [
        {"key": None},
        {"key": OTHER_KEY},
        {"audience": "https://another.example"},
        {"issuer": "https://elsewhere.example"},
        {"recipient": "https://another.example/answer/"},
        {"until": -300},
        {"since": 3600},
        {"request": "_of_another_browser"},
        {"request": ""},
        {"status": "Responder"},
        {"format": "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"},
        {"subject": ""},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_wrong_answer_lets_nobody_in(client: Client, changes: dict[str, Any]) -> None:
    request = begin(client)
    answer = send(client, make_answer(**{"request": request, **changes}))

    assert answer.status_code == 403
    assert "sent an invalid answer" in answer.text
    assert not User.objects.exists()
    assert Change.objects.filter(action=Action.REFUSED).count() == 1


@pytest.mark.parametrize("change", [tampered, wrapped, with_comment, lambda xml: xml[:900]])
def test_an_answer_that_was_changed_lets_nobody_in(
    client: Client, change: Callable[[str], str]
) -> None:
    answer = send(client, change(make_answer(begin(client))))

    assert answer.status_code == 403
    assert not User.objects.exists()


def test_an_answer_is_good_once_and_in_one_browser(client: Client) -> None:
    xml = make_answer(begin(client))
    assert send(Client(), xml).status_code == 403
    assert send(client, xml).status_code == 302
    client.logout()
    assert send(client, xml).status_code == 403
    begin(client)
    assert send(client, xml).status_code == 403


def test_the_server_is_told_what_it_must_know(client: Client) -> None:
    answer = client.get("/login/saml/firm/metadata/")

    assert answer.headers["Content-Type"] == "application/xml"
    assert f'entityID="{SITE}/metadata/"' in answer.text
    assert f'Location="{SITE}/answer/"' in answer.text


@pytest.mark.parametrize("form", [{}, {"SAMLResponse": "x" * 600_000}])
def test_a_form_that_brings_no_answer_is_refused(client: Client, form: dict[str, str]) -> None:
    assert client.post("/login/saml/firm/answer/", form).status_code == 403
