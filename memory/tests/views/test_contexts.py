"""Turns: listed, searched, forgotten."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from documents.tests.views.reading import href, parse, words
from memory.models import Context, Fact
from memory.scopes import UserScope
from memory.tests.factories import remember, remember_many
from memory.tests.views.reading import shown, turns

pytestmark = pytest.mark.django_db


def test_turns_come_newest_first_in_pages_that_meet(client: Client, scope: UserScope) -> None:
    now = timezone.now()
    # two of each time, told in no order
    said = {f"Turn {n}": now - timedelta(hours=(n * 7 % 60) // 2) for n in range(60)}
    remember_many(scope, said)
    rows = Context.objects.order_by("-created_at", "-pk")
    expected = list(rows.values_list("user_message", flat=True))

    first = parse(client.get("/memory/contexts/"))
    second = parse(client.get(href(first, "Older")))
    third = parse(client.get(href(second, "Older")))
    back = parse(client.get(href(third, "Newer")))

    assert turns(first) + turns(second) + turns(third) == expected
    assert turns(back) == turns(second)
    assert "Newer" not in words(first.find(".//main"))
    assert "Older" not in words(third.find(".//main"))


def test_turns_of_one_conversation(client: Client, scope: UserScope) -> None:
    remember(scope, "One", conversation="a/b & c")
    remember(scope, "Two")
    page = parse(client.get("/memory/contexts/"))

    assert turns(parse(client.get(href(page, "a/b & c")))) == ["One"]


def test_a_search_shows_relevance_and_what_it_left_out(client: Client, scope: UserScope) -> None:
    remember(scope, "My sister Clara plays the cello in an orchestra.")
    remember(scope, "The bicycle has a flat tyre.")

    found = parse(client.get("/memory/contexts/", {"find": "Clara cello orchestra"}))
    assert turns(found) == ["My sister Clara plays the cello in an orchestra."]
    assert re.search(r"Relevance \d+ of 100", words(found))
    assert "1 less relevant turn is hidden" in words(found)

    everything = parse(client.get(href(found, "show it")))
    assert len(turns(everything)) == 2
    assert turns(parse(client.get(href(everything, "hide them")))) == turns(found)


@pytest.mark.usefixtures("model_down")
def test_a_search_without_a_model_says_that_it_is_by_words_only(
    client: Client, scope: UserScope
) -> None:
    remember(scope, "My sister Clara plays the cello.")
    page = client.get("/memory/contexts/", {"find": "Clara"})

    assert "Words only." in shown(page)
    assert turns(parse(page)) == ["My sister Clara plays the cello."]


def test_a_question_that_is_too_long_says_so(client: Client, scope: UserScope) -> None:
    answer = client.get("/memory/contexts/", {"find": "a" * 4001})

    assert answer.status_code == 400
    assert "4,000 are allowed. Shorten it." in shown(answer)


def test_what_an_answer_was_given_with_is_forgotten_by_its_words(
    client: Client, scope: UserScope
) -> None:
    said = "My sister Clara plays the cello in an orchestra, and has done so for years."
    pk = remember(scope, said)

    for words_of_it in (said, said[:40]):
        answer = client.get("/memory/said/", {"said": words_of_it})
        assert answer.url == f"/memory/contexts/{pk}/forget/"
    for nothing in ("", "My sister Berta", "cello"):
        answer = client.get("/memory/said/", {"said": nothing})
        assert answer.status_code == 404
        assert "This turn no longer exists" in answer.text


def test_one_turn_or_all_with_its_question_are_forgotten(
    client: Client, scope: UserScope, home: Fact
) -> None:
    ids = [remember(scope, "What was it called?", f"Answer {number}") for number in range(3)]
    path = f"/memory/contexts/{ids[0]}/forget/"
    assert "Forget all 3 with this question" in shown(client.get(path))
    assert Context.objects.count() == 4

    assert "Forgot 1 turn" in shown(client.post(path, {"which": "this"}, follow=True))
    path = f"/memory/contexts/{ids[1]}/forget/"
    assert "Forgot 2 turns" in shown(client.post(path, {"which": "all"}, follow=True))

    source = f"/memory/contexts/{home.source_id}/forget/"
    assert "Home city : Berlin" in shown(client.get(source))
    client.post(source)
    home.refresh_from_db()
    assert (home.source_id, Context.objects.count()) == (None, 0)


@pytest.mark.parametrize("place", ["x", "1.", ".1", "1.1.1", "9" * 30 + ".1", "9" * 18 + ".1", "-"])
def test_a_strange_place_is_the_first_page(client: Client, scope: UserScope, place: str) -> None:
    remember(scope, "Here")
    assert turns(parse(client.get("/memory/contexts/", {"before": place}))) == ["Here"]
