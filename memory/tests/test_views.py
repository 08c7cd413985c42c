"""Alice keeps a memory, Bob is in her workspace, Charlie in another: who sees what, and what is
changed."""

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Membership, Role
from documents.tests.factories import MembershipFactory
from documents.tests.views.reading import href, parse, words
from inference.backends.hashing import HashingEmbedder
from inference.base import BackendUnavailable
from memory import services
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.scopes import UserScope, account_id
from memory.templatetags.memory import visible
from memory.tests.factories import make_scope, remember

pytestmark = pytest.mark.django_db

#: What a page must show as it is, and nothing must take for its own.
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ user.password }}{% load x %}",
    "../../admin/?a=1&user_id=local#x",
    "אבג \u202egnp.exe \u2066",
    "%2F%00\\",
    "w" * 255,
]


def logged_in(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


@pytest.fixture
def alice() -> Membership:
    """The owner."""
    return MembershipFactory()


@pytest.fixture
def scope(alice: Membership) -> UserScope:
    """Alice's memory."""
    return UserScope(alice.workspace.pk, account_id(alice.user))


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's."""
    return logged_in(alice)


@pytest.fixture
def bob(alice: Membership) -> Client:
    """A viewer's."""
    return logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


@pytest.fixture
def charlie() -> Client:
    """That of the owner of another workspace."""
    return logged_in(MembershipFactory())


@pytest.fixture
def home(scope: UserScope) -> Fact:
    """Munich for a year, Berlin for a month, which Alice said in a turn."""
    now = timezone.now()
    said = Context.objects.get(pk=remember(scope, "I moved to Berlin.", "How lovely!"))
    days = {"Munich": 400, "Berlin": 30}
    for value, age in days.items():
        change = services.set_fact(
            scope=scope,
            key="home_city",
            value=value,
            at=now - timedelta(days=age),
            source=said if value == "Berlin" else None,
        )
    assert change is not None
    return change.fact


def paths(home: Fact) -> list[str]:
    turn = f"/memory/contexts/{home.source_id}/"
    return [
        "/memory/",
        "/memory/facts/home_city/",
        "/memory/facts/home_city/forget/",
        "/memory/contexts/",
        "/memory/contexts/?find=moved",
        turn,
        f"{turn}forget/",
        "/memory/reading/",
        "/memory/storage/",
        "/memory/storage/export/",
        "/memory/storage/erase/",
    ]


def shown(answer: Any) -> str:
    """The text of the page's main part."""
    return words(parse(answer).find(".//main"))


def listed(answer: Any) -> list[tuple[str, str]]:
    """The facts of a page, each with its value."""
    rows = parse(answer).iterfind(".//li[@class='fact']")
    return [(words(row.find("h3")), words(row.find(".//p[@class='value']"))) for row in rows]


def body(answer: Any) -> str:
    return b"".join(answer).decode() if answer.streaming else answer.text


# --- who sees what -------------------------------------------------------------------------------


def test_a_stranger_is_sent_to_the_login(home: Fact) -> None:
    for path in paths(home):
        answer = Client().get(path)
        assert answer.status_code == 302, path
        assert answer.url.startswith("/login/"), path


def test_nobody_but_alice_sees_any_of_her_memory(
    client: Client, bob: Client, charlie: Client, alice: Membership, home: Fact
) -> None:
    editor = logged_in(MembershipFactory(workspace=alice.workspace, role=Role.EDITOR))
    for other in (bob, charlie, editor):
        for path in paths(home):
            assert not re.search("Berlin|Munich", body(other.get(path))), path
    for path in paths(home)[:7]:
        assert "Berlin" in client.get(path).text, path


def test_nobody_but_alice_changes_any_of_it(bob: Client, charlie: Client, home: Fact) -> None:
    posts = {
        "/memory/facts/home_city/": {"value": "Rome"},
        "/memory/facts/home_city/end/": {},
        "/memory/facts/home_city/forget/": {},
        f"/memory/contexts/{home.source_id}/forget/": {"which": "all"},
        "/memory/storage/erase/": {"word": "erase"},
    }
    before = list(Fact.objects.values("pk", "value", "valid_to"))
    for other in (bob, charlie):
        for path, data in posts.items():
            assert other.post(path, data).status_code in {302, 404}, path
    assert list(Fact.objects.values("pk", "value", "valid_to")) == before
    assert Context.objects.count() == 1


@pytest.mark.parametrize("disguise", ["user:{}", "USER:{}", " user:{}", "ｕser：{}"])
def test_an_editor_cannot_name_an_account(client: Client, alice: Membership, disguise: str) -> None:
    bob = MembershipFactory(workspace=alice.workspace)
    services.set_fact(
        scope=UserScope(alice.workspace.pk, account_id(bob.user)), key="pin", value="Tulip"
    )

    answer = client.get("/memory/", {"user_id": disguise.format(bob.user.pk)})

    assert answer.status_code == 403
    assert "theirs alone" in answer.text
    assert "Tulip" not in answer.text


def test_an_editor_sees_and_changes_the_memory_of_a_programs_user(
    client: Client, bob: Client, charlie: Client, alice: Membership
) -> None:
    ana = make_scope("ana", workspace=alice.workspace)
    services.set_fact(scope=ana, key="plan", value="enterprise")
    services.set_fact(scope=make_scope("ana"), key="plan", value="of elsewhere")

    page = client.get("/memory/?user_id=ana")
    assert listed(page) == [("Plan", "enterprise")]
    assert "This is not your memory. It is that of the user ana" in shown(page)
    links = [link.get("href") for link in parse(page).iterfind(".//main//nav/a")]
    assert all("user_id=ana" in link for link in links)

    client.post("/memory/facts/plan/end/?user_id=ana")
    assert not services.has_fact(scope=ana, key="plan")
    assert bob.get("/memory/?user_id=ana").status_code == 403
    assert bob.post("/memory/?user_id=ana", {"key": "a", "value": "b"}).status_code == 403
    assert listed(charlie.get("/memory/?user_id=ana")) == []


@pytest.mark.parametrize("name", ["", " ", "unknown", "UNKNOWN"])
def test_nobody_has_no_memory(client: Client, name: str) -> None:
    for path in ("/memory/", "/memory/contexts/", "/memory/storage/export/"):
        answer = client.get(path, {"user_id": name})
        assert answer.status_code == 404
        assert "nobody" in answer.text
    client.post(f"/memory/?{urlencode({'user_id': name})}", {"key": "a", "value": "b"})
    assert not Fact.objects.exists()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_shown_as_text_and_reaches_only_its_own_memory(
    client: Client, alice: Membership, text: str
) -> None:
    scope = make_scope(text, workspace=alice.workspace)
    services.set_fact(scope=scope, key="note", value=text)
    services.set_fact(scope=scope, key="note", value=f"{text}!")
    pk = remember(scope, text, text, conversation=text)
    ExtractionItem.objects.create(
        workspace=alice.workspace, user_id=text, key=text, state="dead", error=text
    )
    others = make_scope("other", workspace=alice.workspace)
    services.set_fact(scope=others, key="note", value="untouched")

    first = client.get("/memory/", {"user_id": text})
    assert listed(first) == [("Note", words_of(f"{text}!"))]
    visited = {"/memory/?" + urlencode({"user_id": text}): first}
    for name in ("facts/note/", "facts/note/forget/", "contexts/", f"contexts/{pk}/",
                 f"contexts/{pk}/forget/", "reading/", "storage/", "storage/erase/"):  # fmt: skip
        visited[name] = client.get(f"/memory/{name}", {"user_id": text})
    for name, answer in visited.items():
        assert answer.status_code == 200, name
        tree = parse(answer)
        assert not tree.findall(".//main//script"), name
        assert not tree.findall(".//main//img"), name
        assert words_of(visible(text))[:40] in words(tree), name
        for link in tree.iterfind(".//main//a"):
            own = link.get("href").startswith("/memory/?user_id=") or "user_id" in link.get("href")
            assert own or link.get("href") in {"/memory/", "/api/docs/"}, (name, link.get("href"))
    # every address on the page leads to the same memory
    assert client.get(href(parse(first), "Note")).status_code == 200
    client.post(parse(first).find(".//button[@form='ending']").get("formaction"))
    assert not services.has_fact(scope=scope, key="note")
    assert services.has_fact(scope=others, key="note")


def words_of(text: str) -> str:
    return " ".join(text.split())


# --- facts ---------------------------------------------------------------------------------------


def test_a_fact_shows_its_value_its_source_and_what_it_was(client: Client, home: Fact) -> None:
    page = client.get("/memory/")
    row = parse(page).find(".//li[@class='fact']")

    assert listed(page) == [("Home city", "Berlin")]
    assert "1 former value Munich" in words(row)
    assert href(row, "what was said") == f"/memory/contexts/{home.source_id}/"
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
    assert "Nothing was known then" in shown(page(401))
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
    assert "is “teal”, as it was." in shown(again)
    other = client.post("/memory/", {"key": "favourite-color", "value": "red"}, follow=True)
    assert "is “red” now; “teal” is in its history." in shown(other)

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
        ({"key": "a", "value": "  "}, "required"),
        ({"key": "!!!", "value": "a"}, "no letter and no digit"),
        ({"key": "k" * 201, "value": "a"}, "longer than 200"),
        ({"key": "a", "value": "v" * 100_001}, "Add it as a document instead"),
        ({"key": "a", "value": "b\0c"}, "Null characters"),
        ({"key": "a", "value": "b", "since": "2999-01-01"}, "still to come"),
        ({"key": "a", "value": "b", "since": "0001-01-01"}, "after the year 1000"),
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
    assert "“Home city” was “Rome” then. What is true now stays." in shown(late)
    assert services.get_fact(scope=scope, key="home_city") == kiel


def test_what_is_true_no_longer_stays_in_the_history(client: Client, home: Fact) -> None:
    end = parse(client.get("/memory/")).find(".//button[@form='ending']").get("formaction")
    told = client.post(end, follow=True)

    assert "true no longer" in shown(told)
    assert listed(told) == []
    assert listed(client.get("/memory/?shown=ended")) == [("Home city", "Berlin")]
    assert Fact.objects.count() == 2
    assert "was not true any more" in shown(client.post(end, follow=True))
    fact = parse(client.get("/memory/facts/home_city/"))
    assert fact.find(".//input[@name='never_true']") is None


def test_forgetting_shows_what_goes_and_removes_the_history(client: Client, home: Fact) -> None:
    path = "/memory/facts/home_city/forget/"
    asked = shown(client.get(path))
    assert "All its 2 values go for good" in asked
    assert "Munich" in asked
    assert Fact.objects.count() == 2

    assert "is forgotten, with 2 values" in shown(client.post(path, follow=True))
    assert not Fact.objects.exists()
    assert client.get(path).status_code == 404
    assert client.get("/memory/facts/home_city/").status_code == 404


def test_facts_are_found_by_key_and_value_and_come_in_pages(
    client: Client, scope: UserScope
) -> None:
    for number in range(60):
        services.set_fact(scope=scope, key=f"fact_{number:02}", value=f"value {number}")
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


# --- contexts ------------------------------------------------------------------------------------


def turns(tree: Any) -> list[str]:
    return [words(row) for row in tree.iterfind(".//li[@class='turn']//h3")]


def test_turns_come_newest_first_in_pages_that_meet(client: Client, scope: UserScope) -> None:
    now = timezone.now()
    for number in range(60):
        # two of each time, told in no order
        remember(scope, f"Turn {number}", at=now - timedelta(hours=(number * 7 % 60) // 2))
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


@pytest.mark.parametrize("place", ["x", "1.", ".1", "1.1.1", "9" * 30 + ".1", "9" * 18 + ".1", "-"])
def test_a_strange_place_is_the_first_page(client: Client, scope: UserScope, place: str) -> None:
    remember(scope, "Here")
    assert turns(parse(client.get("/memory/contexts/", {"before": place}))) == ["Here"]


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
    assert "1 more has little to do with it" in words(found)

    everything = parse(client.get(href(found, "show it")))
    assert len(turns(everything)) == 2
    assert turns(parse(client.get(href(everything, "leave them out")))) == turns(found)


class Down(HashingEmbedder):
    """A model host that does not answer."""

    def embed_query(self, text: str, instruction: str | None = None) -> Any:
        raise BackendUnavailable("the model host does not answer; start it.")


def test_a_search_without_a_model_says_that_it_is_by_words_only(
    client: Client, scope: UserScope, settings: Any
) -> None:
    remember(scope, "My sister Clara plays the cello.")
    down = {"default": {"BACKEND": f"{__name__}.Down"}}
    settings.INFERENCE = {"embedder": down, "reranker": {}}
    page = client.get("/memory/contexts/", {"find": "Clara"})

    assert "Words only." in shown(page)
    assert turns(parse(page)) == ["My sister Clara plays the cello."]


def test_a_question_that_is_too_long_says_so(client: Client, scope: UserScope) -> None:
    answer = client.get("/memory/contexts/", {"find": "a" * 4001})

    assert answer.status_code == 400
    assert "Ask with the part that matters" in shown(answer)


def test_one_turn_or_all_with_its_question_are_forgotten(
    client: Client, scope: UserScope, home: Fact
) -> None:
    ids = [remember(scope, "What was it called?", f"Answer {number}") for number in range(3)]
    path = f"/memory/contexts/{ids[0]}/forget/"
    assert "Forget all 3 with this question" in shown(client.get(path))
    assert Context.objects.count() == 4

    assert "1 turn is forgotten" in shown(client.post(path, {"which": "this"}, follow=True))
    path = f"/memory/contexts/{ids[1]}/forget/"
    assert "2 turns are forgotten" in shown(client.post(path, {"which": "all"}, follow=True))

    source = f"/memory/contexts/{home.source_id}/forget/"
    assert "Home city : Berlin" in shown(client.get(source))
    client.post(source)
    home.refresh_from_db()
    assert (home.source_id, Context.objects.count()) == (None, 0)


# --- reading, storage ----------------------------------------------------------------------------


def test_a_conversation_that_was_given_up_is_seen_on_every_page(
    client: Client, alice: Membership, scope: UserScope, home: Fact
) -> None:
    for key, state in [("a", "dead"), ("b", "waiting"), ("c", "idle")]:
        ExtractionItem.objects.create(
            workspace=alice.workspace, user_id=scope.user_id, key=key, state=state,
            error="The model’s reply was no JSON." if state == "dead" else "",
        )  # fmt: skip
    assert "1 failed" in shown(client.get("/memory/"))
    page = parse(client.get("/memory/reading/"))
    rows = [words(row) for row in page.iterfind(".//li[@class='turn']")]
    assert len(rows) == 2
    assert rows[0].startswith("a Given up 0 messages wait")
    assert "The model’s reply was no JSON." in rows[0]
    assert rows[1].startswith("b Waiting")


def test_a_conversation_that_was_given_up_is_read_again(
    client: Client, bob: Client, alice: Membership, scope: UserScope
) -> None:
    waiting = [{"content": "I live in <b>Rome</b>.", "at": timezone.now().isoformat()}]
    item = ExtractionItem.objects.create(
        workspace=alice.workspace, user_id=scope.user_id, key="chat", state="dead",
        attempts=5, error="No JSON.", messages=waiting,
    )  # fmt: skip
    page = parse(client.get("/memory/reading/"))
    assert "I live in <b>Rome</b>." in words(page.find(".//li[@class='turn']"))
    path = page.find(".//button[@form='retrying']").get("formaction")

    assert bob.post(path).status_code == 404
    item.refresh_from_db()
    assert item.state == "dead"
    assert "“chat” is read again" in shown(client.post(path, follow=True))
    item.refresh_from_db()
    assert (item.state, item.attempts, item.messages) == ("waiting", 0, waiting)
    assert "had not been given up" in shown(client.post(path, follow=True))


def test_storage_tells_the_quota_and_what_was_pruned(
    client: Client, alice: Membership, scope: UserScope, home: Fact, settings: Any
) -> None:
    settings.MEMORY_USER_ROWS = 500
    Pruning.objects.create(
        workspace=alice.workspace, user_id=scope.user_id, reason="user", rows=12, bytes=2048,
        until=timezone.now(),
    )  # fmt: skip
    page = shown(client.get("/memory/storage/"))

    assert "Turns of conversations 1 of 500" in page
    assert "Facts, former values included 2 of 10,000" in page
    assert "12 turns, 2.0 KB" in page


def test_the_export_is_a_file_of_everything(client: Client, home: Fact) -> None:
    answer = client.get("/memory/storage/export/")
    lines = [json.loads(line) for line in body(answer).splitlines()]

    assert re.fullmatch(
        r'attachment; filename="memory-[\d-]+\.jsonl"', answer["Content-Disposition"]
    )
    assert answer["Content-Type"] == "application/x-ndjson"
    assert [line["kind"] for line in lines] == ["memory", "fact", "fact", "context"]


def test_everything_is_erased_only_when_the_word_is_typed(
    client: Client, alice: Membership, home: Fact
) -> None:
    other = UserScope(alice.workspace.pk, "ana")
    services.set_fact(scope=other, key="plan", value="enterprise")
    path = "/memory/storage/erase/"
    assert "2 facts, former values included" in shown(client.get(path))
    for data in ({}, {"word": "ERASED"}, {"word": ""}):
        assert client.post(path, data).status_code == 400
    assert Fact.objects.count() == 3

    told = shown(client.post(path, {"word": " Erase "}, follow=True))
    assert "2 facts with their former values, 1 turns" in told
    assert "Nothing is remembered yet" in told
    assert [fact.value for fact in Fact.objects.all()] == ["enterprise"]


# --- every page ----------------------------------------------------------------------------------


def test_nothing_is_changed_by_looking(client: Client, home: Fact) -> None:
    for path in ("/memory/facts/home_city/end/", "/memory/reading/1/retry/"):
        assert client.get(path).status_code == 405
    for path in ("/memory/contexts/", "/memory/storage/", "/memory/reading/"):
        assert client.post(path).status_code == 405
    for path in paths(home):
        body(client.get(path, {"which": "all", "word": "erase", "value": "x", "key": "y"}))
    assert (Fact.objects.count(), Context.objects.count()) == (2, 1)


def test_a_post_from_elsewhere_is_refused(alice: Membership, home: Fact) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice.user)
    posts = {
        "/memory/": {"key": "a", "value": "b"},
        "/memory/facts/home_city/": {"value": "b"},
        "/memory/facts/home_city/end/": {},
        "/memory/facts/home_city/forget/": {},
        f"/memory/contexts/{home.source_id}/forget/": {},
        "/memory/storage/erase/": {"word": "erase"},
    }
    assert {path: strict.post(path, data).status_code for path, data in posts.items()} == (
        dict.fromkeys(posts, 403)
    )
    assert (Fact.objects.count(), Context.objects.count()) == (2, 1)


def test_no_copy_of_a_memory_is_kept(client: Client, home: Fact) -> None:
    for path in paths(home):
        assert "no-store" in client.get(path)["Cache-Control"], path


def test_a_page_takes_the_same_number_of_queries_for_many_facts(
    client: Client, scope: UserScope, home: Fact, django_assert_max_num_queries: Any
) -> None:
    for number in range(24):
        for value in ("a", "b", "c"):
            services.set_fact(scope=scope, key=f"fact {number}", value=value)
    with django_assert_max_num_queries(12):
        assert len(listed(client.get("/memory/"))) == 25
