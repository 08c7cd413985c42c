"""Who sees what, and who changes it: whatever is in a name or a text."""

from urllib.parse import urlencode

import pytest
from django.test import Client

from accounts.models import Membership
from documents.tests.views.reading import href, parse, words
from memory import services
from memory.models import ExtractionItem, Fact
from memory.templatetags.memory import visible
from memory.tests.factories import make_scope, remember
from memory.tests.views.reading import listed, paths, shown

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


def test_an_editor_sees_and_changes_the_memory_of_a_programs_user(
    client: Client, bob: Client, charlie: Client, alice: Membership
) -> None:
    ana = make_scope("ana", workspace=alice.workspace)
    services.set_fact(scope=ana, key="plan", value="enterprise")
    services.set_fact(scope=make_scope("ana"), key="plan", value="of elsewhere")

    page = client.get("/memory/?user_id=ana")
    assert listed(page) == [("Plan", "enterprise")]
    assert "This is the memory of the user ana" in shown(page)
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
        assert "have no memory" in answer.text
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


def test_no_copy_of_a_memory_is_kept(client: Client, home: Fact) -> None:
    for path in paths(home):
        assert "no-store" in client.get(path)["Cache-Control"], path
