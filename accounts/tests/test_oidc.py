"""Signing in by OpenID Connect, against a provider in a process of its own."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.test import Client

from accounts.audit import Action, Kind
from accounts.groups import add_members, create_group
from accounts.models import (
    Change,
    Identity,
    LoginSession,
    Membership,
    User,
    Workspace,
    WorkspaceGroup,
)
from accounts.tests.oidc_provider import ANNA, CLIENT_ID, CLIENT_SECRET, Provider, running_provider

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def process() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(process: Provider, settings: Any) -> Provider:
    """The provider, answering rightly, and the site that trusts it."""
    process.tell(reset=True)
    settings.LOGIN_ADDRESS_RATE = "0"  # so many failures come from one address
    settings.OIDC_PROVIDERS = {
        "firm": {
            "issuer": process.issuer,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "name": "Firm",
            "groups": "groups",
            "workspace": "lab",
        }
    }
    return process


@pytest.fixture(autouse=True)
def lab() -> Workspace:
    return Workspace.objects.create(slug="lab", name="The lab")


def set_option(settings: Any, **options: Any) -> None:
    settings.OIDC_PROVIDERS = {"firm": {**settings.OIDC_PROVIDERS["firm"], **options}}


def go(client: Client, **query: str) -> str:
    """Begin, let the provider answer, and return the address that it sends the browser back to."""
    begun = client.get("/login/oidc/firm/", query)
    assert begun.status_code == 302, begun.content
    answer = requests.get(begun.url, allow_redirects=False, timeout=5)
    assert answer.status_code == 302, answer.text
    url = urlsplit(answer.headers["Location"])
    return f"{url.path}?{url.query}"


def sign_in(client: Client) -> Any:
    return client.get(go(client))


def assert_refused(answer: Any, said: str, *, status: int = 403) -> None:
    assert answer.status_code == status, answer.content
    assert said in answer.text
    assert "_auth_user_id" not in answer.wsgi_request.session
    assert not User.objects.filter(username="anna").exists()


def reasons() -> list[str]:
    rows = Change.objects.filter(action=Action.REFUSED).order_by("id")
    return [row.details["values"]["reason"] for row in rows]


# --- a sign-in that is right -------------------------------------------------------------------


def test_a_new_person_gets_an_account_and_comes_back_to_the_page(
    client: Client, provider: Provider, lab: Workspace
) -> None:
    answer = client.get(go(client, next="/documents/"))

    assert (answer.status_code, answer.url) == (302, "/documents/")
    user = User.objects.get()
    assert (user.username, user.email, user.first_name) == ("anna", ANNA["email"], "Anna")
    assert not user.has_usable_password()
    assert Membership.objects.get().role == "viewer"
    identity = Identity.objects.get()
    assert (identity.issuer, identity.subject) == (provider.issuer, ANNA["sub"])
    assert client.get("/documents/").status_code == 200


def test_the_second_sign_in_is_of_the_same_account_whatever_its_name_and_address(
    client: Client, provider: Provider
) -> None:
    sign_in(client)
    client.logout()
    provider.tell(claims={**ANNA, "preferred_username": "a.berg", "email": "new@firm.example"})

    assert sign_in(client).status_code == 302
    assert User.objects.get().username == "anna"


def test_another_subject_with_the_same_name_is_another_account(
    client: Client, provider: Provider
) -> None:
    User.objects.create_user("anna")

    assert sign_in(client).status_code == 302
    assert set(User.objects.values_list("username", flat=True)) == {"anna", "anna-2"}


def test_claims_that_only_the_userinfo_has_are_read_there(
    client: Client, provider: Provider
) -> None:
    provider.tell(faults=["slim"])

    sign_in(client)
    assert User.objects.get().username == "anna"
    assert Identity.objects.get().groups == ["harbour"]


def test_the_session_ends_after_the_hours_of_the_provider(
    client: Client, provider: Provider, settings: Any
) -> None:
    set_option(settings, session_hours=2)
    sign_in(client)

    assert 7_100 < client.session.get_expiry_age() <= 7_200


def test_the_audit_log_and_the_list_of_sessions_say_by_what(
    client: Client, provider: Provider
) -> None:
    sign_in(client)

    change = Change.objects.get(action=Action.SIGNED_IN, kind=Kind.SESSION)
    assert change.user == User.objects.get()
    assert change.details["values"] == {"method": "oidc"}
    assert LoginSession.objects.get().method == "oidc"


# --- answers that are wrong --------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": {"aud": "another client"}},
        {"token": {"aud": ["another client"], "azp": CLIENT_ID}},
        {"token": {"aud": None}},
        {"token": {"iss": "https://elsewhere.example"}},
        {"token": {"iss": None}},
        {"token": {"exp": 1_600_000_000}},
        {"token": {"exp": None}},
        {"token": {"iat": 4_000_000_000}},
        {"token": {"nbf": 4_000_000_000}},
        {"token": {"nonce": "of another sign-in"}},
        {"token": {"nonce": None}},
        {"token": {"azp": "another client"}},
        {"token": {"at_hash": "AAAA"}},
        {"token": {"sub": None}},
        {"token": {"sub": ""}},
        {"faults": ["unsigned"]},
        {"faults": ["symmetric"]},
        {"faults": ["other_key"]},
        {"faults": ["no_id_token"]},
        {"faults": ["slim", "other_userinfo"]},
        {"metadata": {"issuer": "https://elsewhere.example"}},
        {"metadata": {"id_token_signing_alg_values_supported": ["HS256", "none"]}},
        {"metadata": {"jwks_uri": None}},
    ],
    ids=lambda wrong: " ".join(f"{kind} {value}" for kind, value in wrong.items())[:60],
)
def test_a_wrong_answer_lets_nobody_in(
    client: Client, provider: Provider, wrong: dict[str, Any]
) -> None:
    back = go(client)
    provider.tell(**wrong)

    assert_refused(client.get(back), "sent an invalid answer")
    assert reasons() == ["answer"]


def test_an_answer_is_good_once(client: Client, provider: Provider) -> None:
    back = go(client)
    client.get(back)
    client.logout()

    answer = client.get(back)
    assert answer.status_code == 403
    assert "This sign-in was started elsewhere or has expired" in answer.text


def test_an_answer_opens_only_the_browser_that_asked(provider: Provider) -> None:
    """Its address, given to somebody else, logs nobody in as anybody."""
    back = go(Client())

    assert_refused(Client().get(back), "This sign-in was started elsewhere or has expired")


def test_a_code_of_another_sign_in_is_refused_by_its_verifier(
    client: Client, provider: Provider
) -> None:
    other = Client()
    stolen = parse_qs(urlsplit(go(other)).query)["code"][0]
    state = parse_qs(urlsplit(go(client)).query)["state"][0]

    answer = client.get("/login/oidc/firm/callback/", {"code": stolen, "state": state})
    assert_refused(answer, "sent an invalid answer")


def test_a_state_that_is_over_says_so(client: Client, provider: Provider) -> None:
    back = go(client)
    session = client.session
    for key in [key for key, _ in session.items() if key.startswith("_state_")]:
        del session[key]
    session.save()

    assert_refused(client.get(back), "has expired")


def test_whoever_cancels_is_told_how_to_go_on(client: Client, provider: Provider) -> None:
    provider.tell(faults=["cancel"])

    assert_refused(sign_in(client), "canceled")
    assert reasons() == ["cancelled"]


def test_another_key_of_the_provider_is_noticed_at_once(client: Client, provider: Provider) -> None:
    sign_in(client)
    client.logout()
    provider.tell(rotate=True)

    assert sign_in(client).status_code == 302


@pytest.mark.parametrize("faults", [["down"], ["token_down"]])
def test_a_provider_that_is_down_leaves_the_password(
    client: Client, provider: Provider, faults: list[str]
) -> None:
    back = go(client)
    provider.tell(faults=faults)

    answer = client.get(back)
    assert answer.status_code in (403, 503)
    assert "?local" in answer.text
    owner = User.objects.create_superuser("owner", password="correct horse battery staple")
    client.post("/login/", {"username": "owner", "password": "correct horse battery staple"})
    assert client.session["_auth_user_id"] == str(owner.pk)


def test_a_provider_that_is_away_is_told_at_the_beginning(
    client: Client, provider: Provider, settings: Any
) -> None:
    set_option(settings, issuer="http://127.0.0.1:9")

    answer = client.get("/login/oidc/firm/")
    assert answer.status_code == 503
    assert "Firm does not respond" in answer.text


def test_a_provider_that_nobody_set_up_is_not_there(client: Client, provider: Provider) -> None:
    assert client.get("/login/oidc/other/").status_code == 404
    assert client.get("/login/oidc/other/callback/?code=1&state=2").status_code == 404


def test_nothing_of_the_address_reaches_the_provider(client: Client, provider: Provider) -> None:
    begun = client.get("/login/oidc/firm/", {"scope": "all", "redirect_uri": "https://x.example"})

    query = parse_qs(urlsplit(begun.url).query)
    assert query["scope"] == ["openid profile email"]
    assert query["redirect_uri"] == ["http://testserver/login/oidc/firm/callback/"]


def test_nobody_is_led_to_another_site(client: Client, provider: Provider) -> None:
    assert client.get(go(client, next="https://elsewhere.example/")).url == "/"


def test_failures_are_counted_for_the_address(
    client: Client, provider: Provider, settings: Any
) -> None:
    settings.LOGIN_ADDRESS_RATE = "3/hour"
    client.defaults["REMOTE_ADDR"] = "192.0.2.71"
    callback = "/login/oidc/firm/callback/?code=x&state=y"

    assert [client.get(callback).status_code for _ in range(4)] == [403, 403, 403, 429]
    assert client.get("/login/oidc/firm/").status_code == 429


# --- who may come in, and as whom --------------------------------------------------------------


@pytest.mark.parametrize(
    ("by_email", "verified", "is_superuser", "has_twin", "is_linked"),
    [
        (True, True, False, False, True),
        (False, True, False, False, False),
        *((True, verified, False, False, False) for verified in (False, None, "false", 1)),
        (True, True, True, False, False),
        (True, True, False, True, False),
    ],
)
def test_a_checked_address_of_one_account_links_it_where_the_settings_say_so(
    client: Client, provider: Provider, settings: Any, by_email: bool, verified: object,
    is_superuser: bool, has_twin: bool, is_linked: bool,
) -> None:  # fmt: skip
    set_option(settings, link_by_email=by_email)
    here = User.objects.create_user(
        "somebody", email="Anna@firm.example", is_superuser=is_superuser
    )
    if has_twin:
        User.objects.create_user("other", email="anna@firm.example")
    provider.tell(claims={**ANNA, "email_verified": verified})
    sign_in(client)

    linked = Identity.objects.get().user
    assert (linked == here) is is_linked
    assert linked.username == ("somebody" if is_linked else "anna")
    assert verified is True or linked.email == ""


def test_new_people_stay_outside_where_no_account_is_made(
    client: Client, provider: Provider, settings: Any
) -> None:
    set_option(settings, create=False)

    assert_refused(sign_in(client), "no account here yet")
    assert reasons() == ["no_account"]


def test_only_groups_that_are_allowed_come_in_each_time(
    client: Client, provider: Provider, settings: Any
) -> None:
    set_option(settings, allowed_groups=["harbour", "crane"])
    assert sign_in(client).status_code == 302
    client.logout()
    provider.tell(claims={**ANNA, "groups": ["kitchen"]})

    answer = sign_in(client)
    assert answer.status_code == 403
    assert reasons() == ["group"]


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 302),
        ({"email": "anna@firm.example.evil.example"}, 403),
        ({"email": "anna@elsewhere.example"}, 403),
        ({"email_verified": False}, 403),
    ],
)
def test_only_domains_that_are_allowed_come_in(
    client: Client, provider: Provider, settings: Any, claims: dict[str, Any], status: int
) -> None:
    set_option(settings, domains=["firm.example"])
    provider.tell(claims={**ANNA, **claims})

    assert sign_in(client).status_code == status


def test_a_user_who_is_switched_off_stays_outside(client: Client, provider: Provider) -> None:
    sign_in(client)
    client.logout()
    User.objects.update(is_active=False)

    assert sign_in(client).status_code == 403
    assert reasons() == ["inactive"]


def test_groups_follow_the_claims_and_those_given_by_hand_stay(
    client: Client, provider: Provider, lab: Workspace
) -> None:
    groups = [create_group(workspace=lab, name=name) for name in ("Harbour", "Crane", "By hand")]
    sign_in(client)
    membership = Membership.objects.get()
    add_members(group=groups[2], memberships=[membership])

    def names() -> set[str]:
        return set(
            WorkspaceGroup.objects.filter(members__membership=membership).values_list(
                "name", flat=True
            )
        )

    assert names() == {"Harbour", "By hand"}
    client.logout()
    provider.tell(claims={**ANNA, "groups": ["crane", "unknown"]})
    sign_in(client)
    assert names() == {"Crane", "By hand"}
    client.logout()
    provider.tell(claims={**ANNA, "groups": None})
    sign_in(client)
    assert names() == {"By hand"}


def test_an_account_that_goes_takes_identity_and_sessions_along(
    client: Client, provider: Provider
) -> None:
    sign_in(client)
    User.objects.get().delete()

    assert not Identity.objects.exists()
    assert not LoginSession.objects.exists()
    assert client.get("/documents/").status_code == 302
