"""Signing in in a real Chromium: a firm's account, an authenticator app, passkeys, sessions."""

import re
from base64 import b32decode
from collections.abc import Iterator
from time import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from playwright.sync_api import Browser, expect

from accounts.models import Identity, Membership, SecondFactor, User
from accounts.tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, running_provider
from documents.tests.factories import MembershipFactory, UserFactory
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("quick_passwords"),
]
PASSWORD = "correct horse battery staple"


@pytest.fixture
def quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def alice(settings: Any) -> Membership:
    settings.SECOND_FACTOR = "optional"
    user = UserFactory(username="alice")
    user.set_password(PASSWORD)
    user.save()
    return MembershipFactory(user=user, role="owner")


@pytest.fixture
def visit(browser: Browser, live_server: Any) -> Iterator[Visit]:
    # Passkeys are of names and not of addresses: an IP address has none.
    visit = Visit(browser, live_server.url.replace("127.0.0.1", "localhost"))
    yield visit
    visit.close()


def fill_login(visit: Visit) -> None:
    visit.page.goto("/login/")
    visit.page.get_by_label("Username").fill("alice")
    visit.page.get_by_label("Password").fill(PASSWORD)
    visit.page.get_by_role("button", name="Log in").click()


def log_out(visit: Visit) -> None:
    visit.page.goto("/")
    visit.page.locator(".rail summary").click()
    visit.page.get_by_role("button", name="Log out").click()
    expect(visit.page.get_by_role("heading", name="Log in")).to_be_visible()


def check(visit: Visit) -> None:
    """The page that is shown is fit for every size and for axe."""
    assert visit.serious_findings() == []
    visit.page.set_viewport_size({"width": 390, "height": 844})
    assert not visit.scrolls_sideways()
    visit.page.set_viewport_size({"width": 1280, "height": 900})


def test_a_firms_account_leads_in_and_the_security_page_names_it(
    visit: Visit, alice: Membership, settings: Any
) -> None:
    with running_provider() as provider:
        provider.tell(faults=["page"])
        settings.OIDC_PROVIDERS = {
            "firm": {
                "issuer": provider.issuer,
                "client_id": CLIENT_ID,
                "client_secret": CLIENT_SECRET,
                "name": "Firm",
                "groups": "groups",
                "workspace": alice.workspace.slug,
            }
        }
        settings.LOCAL_LOGIN = "owners"
        page = visit.page
        page.goto("/documents/")
        check(visit)
        page.get_by_role("link", name="Sign in with Firm").click()
        page.get_by_role("link", name="Continue as Anna").click()
        expect(page.get_by_role("heading", name="Documents")).to_be_visible()
        assert page.url.endswith("/documents/")
        assert Identity.objects.get().user.username == "anna"

        page.goto("/account/security/")
        expect(page.get_by_text("OpenID Connect · 248289761001")).to_be_visible()
        check(visit)
        log_out(visit)

        provider.tell(faults=["page"], token={"aud": "another client"})
        page.get_by_role("link", name="Sign in with Firm").click()
        page.get_by_role("link", name="Continue as Anna").click()
        expect(page.get_by_role("heading", name="Not signed in")).to_be_visible()
        check(visit)
        page.get_by_role("link", name="Log in with a password").click()
        page.get_by_label("Username").fill("alice")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(visit.site + "/")
    visit.outside = [url for url in visit.outside if not url.startswith(provider.issuer)]
    visit.errors = [text for text in visit.errors if "403" not in text]


def test_an_app_is_set_up_and_asked_for(visit: Visit, alice: Membership) -> None:
    page = visit.page
    fill_login(visit)
    page.wait_for_url(visit.site + "/")
    page.goto("/account/security/")
    page.get_by_role("link", name="Set up an app").click()
    check(visit)
    expect(page.locator("svg.qr")).to_be_visible()
    secret = b32decode(re.sub(r"\s", "", page.locator(".typed-secret").inner_text()))
    code = TOTP(secret, 6, SHA1(), 30).generate(int(time())).decode()
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    check(visit)
    codes = page.locator(".codes li").all_inner_texts()
    page.get_by_role("link", name="I have saved them").click()
    check(visit)
    log_out(visit)

    fill_login(visit)
    expect(page.get_by_role("heading", name="Second step")).to_be_visible()
    check(visit)
    page.get_by_label("Code").fill(codes[0])
    page.get_by_role("button", name="Go on").click()
    page.wait_for_url(visit.site + "/")


def test_a_passkey_is_made_and_takes_the_place_of_the_password(
    visit: Visit, alice: Membership
) -> None:
    page = visit.page
    devices = visit.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    device = devices.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )["authenticatorId"]
    fill_login(visit)
    page.wait_for_url(visit.site + "/")
    page.goto("/account/passkeys/new/")
    check(visit)
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    assert SecondFactor.objects.get(kind="passkey").name == "laptop"
    log_out(visit)

    # in place of the password
    page.goto("/login/?next=/documents/")
    check(visit)
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(visit.site + "/documents/")
    log_out(visit)

    # as a second step
    fill_login(visit)
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(visit.site + "/")
    assert SecondFactor.objects.get(kind="passkey").last_used_at is not None
    log_out(visit)

    # a device that did not check its owner is not enough without a password
    devices.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_text("No passkey was used")).to_be_visible()
    assert User.objects.get(username="alice").is_active
