"""Facts: what was known when, and how it is corrected, ended and forgotten."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from documents.tests.views.reading import href, parse, words
from memory import services
from memory.models import Fact
from memory.scopes import UserScope
from memory.tests.factories import know_many
from memory.tests.views.reading import listed, shown

pytestmark = pytest.mark.django_db


def test_a_fact_shows_its_value_its_source_and_what_it_was(client: Client, home: Fact) -> None:
    page = client.get("/memory/")
    row = parse(page).find(".//li[@class='fact']")

    assert listed(page) == [("Home city", "Berlin")]
    assert "1 former value Munich" in words(row)
    assert href(row, "this conversation") == f"/memory/contexts/{home.source_id}/"
    values = parse(client.get("/memory/facts/homeCity/")).iterfind(".//ol/li/p[@class='value']")
    assert [words(value) for value in values] == ["Berlin", "Munich"]


def test_as_of_a_day_it_shows_what_was_known_then(client: Client, home: Fact) -> None:
    today = timezone.localdate()

    def page(days: int) -> Any:
        return client.get("/memory/", {"as_of": (today - timedelta(days=days)).isoformat()})

    assert listed(page(0)) == listed(page(30)) == [("Home city", "Berlin")]
    assert listed(page(31)) == [("Home city", "Munich")]
    assert "now Berlin" in shown(page(31))
    assert "now" not in words(parse(page(30)).find(".//li[@class='fact']"))
    assert listed(page(401)) == []
    assert "No facts on that date" in shown(page(401))
    assert not parse(page(31)).findall(".//button[@form='ending']")


@pytest.mark.parametrize("day", ["tomorrow", "9999-12-31", "0001-01-01", "2026-13-40"])
def test_a_day_that_cannot_be_says_so(client: Client, home: Fact, day: str) -> None:
    answer = client.get("/memory/", {"as_of": day})

    assert answer.status_code == 400
    assert words(parse(answer).find(".//*[@role='alert']"))
    assert listed(answer) == []


def test_a_fact_is_added_then_corrected_under_any_spelling(
    client: Client, scope: UserScope
) -> None:
    first = client.post("/memory/", {"key": "Favourite Color", "value": "teal"}, follow=True)
    assert "“Favourite color” is “teal”." in shown(first)
    again = client.post("/memory/", {"key": "favouriteColor", "value": "teal"}, follow=True)
    assert "is still “teal”." in shown(again)
    other = client.post("/memory/", {"key": "favourite-color", "value": "red"}, follow=True)
    assert "is now “red”; “teal” is in its history." in shown(other)

    assert [fact.value for fact in services.history(scope=scope, key="favourite_color")] == [
        "red",
        "teal",
    ]
    assert services.get_all_facts(scope=scope)[0].origin == "given"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": "", "value": "a"}, "required"),
        ({"key": "a", "value": ""}, "required"),
        ({"key": "k" * 201, "value": "a"}, "longer than 200"),
        ({"key": "a", "value": "v" * 100_001}, "Add it as a document instead"),
        ({"key": "a", "value": "b", "since": "2999-01-01"}, "in the future"),
    ],
)
def test_a_fact_that_cannot_be_says_why_beside_the_field(
    client: Client, given: dict[str, str], message: str
) -> None:
    answer = client.post("/memory/", given)

    assert answer.status_code == 400
    assert message in words(parse(answer).find(".//details[@id='new']//*[@class='errorlist']"))
    assert parse(answer).find(".//details[@id='new']").get("open") is not None
    assert not Fact.objects.exists()


def test_a_full_memory_refuses_another_fact(
    client: Client, scope: UserScope, home: Fact, settings: Any
) -> None:
    settings.MEMORY_MAX_FACTS = 2
    answer = client.post("/memory/", {"key": "pet", "value": "a cat"})

    assert answer.status_code == 400
    assert "Forget some first" in shown(answer)
    assert Fact.objects.count() == 2


def test_a_correction_may_say_since_when_or_that_it_never_was(
    client: Client, scope: UserScope, home: Fact
) -> None:
    path = "/memory/facts/home_city/"
    day = timezone.localdate() - timedelta(days=7)
    client.post(path, {"value": "Hamburg", "since": day.isoformat()})
    hamburg = services.get_fact(scope=scope, key="home_city")
    assert hamburg is not None
    assert (hamburg.value, timezone.localdate(hamburg.valid_from)) == ("Hamburg", day)

    client.post(path, {"value": "Bremen", "never_true": "on"})
    bremen = services.get_fact(scope=scope, key="home_city")
    assert bremen is not None
    assert (bremen.value, bremen.valid_from) == ("Bremen", hamburg.valid_from)

    services.set_fact(scope=scope, key="home_city", value="Bremen")
    client.post(path, {"value": "Kiel", "never_true": "on"})
    kiel = services.get_fact(scope=scope, key="home_city")
    assert kiel is not None
    assert (kiel.value, kiel.valid_from) == ("Kiel", hamburg.valid_from)

    early = timezone.localdate() - timedelta(days=200)
    late = client.post(path, {"value": "Rome", "since": early.isoformat()}, follow=True)
    assert "“Home city” was “Rome” then. The current value stays." in shown(late)
    assert services.get_fact(scope=scope, key="home_city") == kiel


def test_what_is_true_no_longer_stays_in_the_history(client: Client, home: Fact) -> None:
    end = parse(client.get("/memory/")).find(".//button[@form='ending']").get("formaction")
    told = client.post(end, follow=True)

    assert "no longer true" in shown(told)
    assert listed(told) == []
    assert listed(client.get("/memory/?shown=ended")) == [("Home city", "Berlin")]
    assert Fact.objects.count() == 2
    assert "was already ended" in shown(client.post(end, follow=True))
    fact = parse(client.get("/memory/facts/home_city/"))
    assert fact.find(".//input[@name='never_true']") is None


def test_forgetting_shows_what_goes_and_removes_the_history(client: Client, home: Fact) -> None:
    path = "/memory/facts/home_city/forget/"
    asked = shown(client.get(path))
    assert "This permanently deletes all its 2 values" in asked
    assert "Munich" in asked
    assert Fact.objects.count() == 2

    assert "Forgot “Home city” with 2 values" in shown(client.post(path, follow=True))
    assert not Fact.objects.exists()
    assert client.get(path).status_code == 404
    assert client.get("/memory/facts/home_city/").status_code == 404


def test_facts_are_found_by_key_and_value_and_come_in_pages(
    client: Client, scope: UserScope
) -> None:
    know_many(scope, {f"fact_{number:02}": f"value {number}" for number in range(60)})
    services.set_fact(scope=scope, key="home_city", value="Berlin")

    first = parse(client.get("/memory/"))
    second = parse(client.get(href(first, "More facts")))
    third = parse(client.get(href(second, "More facts")))
    pages = [
        [words(row) for row in page.iterfind(".//main//h3")] for page in (first, second, third)
    ]
    assert [len(page) for page in pages] == [25, 25, 11]
    assert [name for page in pages for name in page] == [
        *(f"Fact {number:02}" for number in range(60)),
        "Home city",
    ]

    for find in ("home city", "HOME", "berl"):
        assert listed(client.get("/memory/", {"find": find})) == [("Home city", "Berlin")]
    assert listed(client.get("/memory/", {"find": "%"})) == []


def test_a_page_takes_the_same_number_of_queries_for_many_facts(
    client: Client, scope: UserScope, home: Fact, django_assert_max_num_queries: Any
) -> None:
    keys = [f"fact_{number}" for number in range(24)]
    for days in (3, 2):
        ago = timezone.now() - timedelta(days=days)
        know_many(scope, dict.fromkeys(keys, "a"), valid_from=ago, valid_to=ago)
    know_many(scope, dict.fromkeys(keys, "c"))
    with django_assert_max_num_queries(12):
        assert len(listed(client.get("/memory/"))) == 25


def test_an_ended_fact_says_so_and_so_does_the_turn_that_stated_it(
    client: Client, home: Fact
) -> None:
    def pills(path: str) -> list[str]:
        page = parse(client.get(path))
        return [words(pill) for pill in page.findall(".//span[@class='pill']")]

    turn = f"/memory/contexts/{home.source_id}/"
    assert pills("/memory/facts/home_city/") == pills("/memory/contexts/") == []
    assert "Outdated" not in shown(client.get(turn))
    client.post("/memory/facts/home_city/end/")
    assert pills("/memory/facts/home_city/") == ["No longer true"]
    assert pills("/memory/contexts/") == ["Outdated"]
    assert "Outdated: something said here is no longer true" in shown(client.get(turn))
