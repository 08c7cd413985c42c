"""Saved searches: on the page, on a page of their own, over the API."""

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import ChunkFactory, CollectionFactory, MembershipFactory
from search.models import SavedSearch
from search.services import MAX_SAVED
from search.tests.test_views import page, titles

pytestmark = pytest.mark.django_db

PARAMETERS = "q=nausea&mode=lexical&collection=leaflets"


@pytest.fixture
def alice() -> Membership:
    member = MembershipFactory()
    leaflets = CollectionFactory(workspace=member.workspace, slug="leaflets", name="Leaflets")
    ChunkFactory(
        document__collection=leaflets, document__title="Aripiprazole", text="Nausea is common."
    )
    return member


def save(client: Client, name: str = "Nausea", parameters: str = PARAMETERS) -> Any:
    return client.post("/saved/new/", {"name": name, "parameters": parameters}, follow=True)


# --- on the pages -------------------------------------------------------------------------------


def test_a_search_is_saved_and_run_again_from_every_search_page(client: Client) -> None:
    answer = save(client)
    assert answer.redirect_chain == [(f"/?{PARAMETERS}", 302)]
    assert "“Nausea” is saved." in answer.text

    start = page(client)
    address = next(a.get("href") for a in start.iterfind(".//a") if a.text == "Nausea")
    assert titles(page(client, **dict(pair.split("=") for pair in address[2:].split("&"))))
    assert SavedSearch.objects.get().parameters == PARAMETERS


def test_what_is_kept_is_the_search_and_not_the_page_of_it(client: Client) -> None:
    save(client, parameters="page=3&explain=1&q=nausea&foreign=1&sort=newest&rerank=0")
    assert SavedSearch.objects.get().parameters == "q=nausea&sort=newest&rerank=0"


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("", PARAMETERS, "1 to 100 characters"),
        ("x" * 101, PARAMETERS, "1 to 100 characters"),
        ("Taken", PARAMETERS, "have a saved search “Taken” already"),
        ("Nothing", "", "There is no search to save yet"),
    ],
)
def test_what_cannot_be_saved_says_why(
    client: Client, name: str, parameters: str, said: str
) -> None:
    save(client, "Taken")
    assert said in save(client, name, parameters).text
    assert SavedSearch.objects.count() == 1


def test_an_address_too_long_or_with_a_mode_that_is_none_is_refused(client: Client) -> None:
    assert save(client, parameters="q=" + "x" * 7000).status_code == 400
    assert save(client, parameters="q=x&mode=psychic").status_code == 400
    assert save(client, parameters="&".join(["q=1"] * 1500)).status_code == 400
    assert not SavedSearch.objects.exists()


def test_it_is_renamed_deleted_and_saved_again(client: Client) -> None:
    save(client)
    row = SavedSearch.objects.get()

    answer = client.post(f"/saved/{row.pk}/rename/", {"name": " Side\n effects "}, follow=True)
    assert "It is called “Side effects” now." in answer.text
    assert "Words · leaflets" in answer.text

    gone = client.post(f"/saved/{row.pk}/delete/", follow=True)
    assert "“Side effects” is deleted." in gone.text
    assert not SavedSearch.objects.exists()
    form = next(f for f in gone.context["gone"].items())
    assert form == ("name", "Side effects")
    save(client, **gone.context["gone"])
    assert SavedSearch.objects.get().name == "Side effects"


def test_a_saved_search_that_cannot_be_read_any_more_is_listed_all_the_same(
    client: Client, alice: Membership
) -> None:
    SavedSearch.objects.create(
        workspace=alice.workspace, user=alice.user, name="Old", parameters="q=x&mode=gone"
    )
    assert "Old" in client.get("/saved/").text


def test_a_list_has_an_end(client: Client, alice: Membership) -> None:
    owner = {"workspace": alice.workspace, "user": alice.user}
    SavedSearch.objects.bulk_create(
        SavedSearch(**owner, name=f"Search {n}", parameters="q=x") for n in range(MAX_SAVED)
    )
    assert "Delete one first" in save(client, "Another").text
    assert SavedSearch.objects.count() == MAX_SAVED


# --- over the API -------------------------------------------------------------------------------

ADDRESS = "/api/v1/saved-searches/"


def test_a_program_saves_reads_changes_and_deletes(api: APIClient, alice: Membership) -> None:
    made = api.post(ADDRESS, {"name": "Nausea", "parameters": f"?{PARAMETERS}&page=2"})
    assert made.status_code == 201, made.json()
    body = made.json()
    assert body["parameters"] == PARAMETERS
    assert body["page"] == f"http://testserver/?{PARAMETERS}"
    one = f"{ADDRESS}{body['id']}/"

    assert [row["name"] for row in api.get(ADDRESS).json()["results"]] == ["Nausea"]
    changed = api.patch(one, {"name": "Side effects", "parameters": "q=restless"})
    assert (changed.json()["name"], changed.json()["parameters"]) == ("Side effects", "q=restless")
    assert api.delete(one).status_code == 204
    assert api.get(one).status_code == 404


def test_a_program_is_told_what_is_wrong(api: APIClient) -> None:
    api.post(ADDRESS, {"name": "Nausea", "parameters": PARAMETERS})
    taken = api.post(ADDRESS, {"name": "Nausea", "parameters": PARAMETERS})
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")

    wrong = api.post(ADDRESS, {"name": "Other", "parameters": "q=x&mode=psychic"})
    assert wrong.status_code == 400
    nothing = api.post(ADDRESS, {"name": "Other", "parameters": "page=2"})
    assert nothing.json()["errors"][0]["attr"] == "parameters"
