"""What editors say of hits where they are shown, and what the page makes of it."""

from typing import Any

import pytest
from django.test import Client
from lxml import html as lxml_html

from accounts.models import Membership, Role
from documents.models import Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from search.judgements import Grade
from search.models import Judgement
from search.tests.test_views import hits, page
from tests.kit import logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def leaflet(alice: Membership) -> Document:
    leaflets = CollectionFactory(workspace=alice.workspace, slug="leaflets", name="Leaflets")
    document = DocumentFactory(collection=leaflets, title="Aripiprazole")
    ChunkFactory(document=document, text="Nausea is common.")
    return document


def buttons(tree: lxml_html.HtmlElement) -> dict[str, lxml_html.HtmlElement]:
    """Those of the first hit, by what they say."""
    return {b.text: b for b in hits(tree)[0].iterfind(".//button[@form='judge']")}


def press(client: Client, name: str, question: str = "nausea", **headers: Any) -> Any:
    value = buttons(page(client, q=question))[name].get("value")
    return client.post("/judge/", {"parameters": f"q={question}", "hit": value}, headers=headers)


def test_a_press_judges_and_comes_back_to_the_hit(client: Client, leaflet: Document) -> None:
    answer = press(client, "Good")

    judgement = Judgement.objects.get()
    assert (judgement.document, judgement.question) == (leaflet, "nausea")
    assert (judgement.grade, judgement.chunk) == (Grade.GOOD, leaflet.chunks.get())
    assert answer.url == f"/?q=nausea#hit-{leaflet.chunks.get().pk}"
    pressed = {name: b.get("aria-pressed") for name, b in buttons(page(client, q="nausea")).items()}
    assert pressed == {"Best": "false", "Good": "true", "Bad": "false"}
    assert "1 question judged here so far" in " ".join(
        page(client, q="nausea").text_content().split()
    )


def test_another_press_changes_it_and_the_same_takes_it_back(
    client: Client, leaflet: Document
) -> None:
    press(client, "Good")
    press(client, "Best")
    assert Judgement.objects.get().grade == Grade.PINNED
    press(client, "Best")
    assert not Judgement.objects.exists()


def test_a_script_gets_the_buttons_anew(client: Client, leaflet: Document) -> None:
    part = press(client, "Bad", **{"HX-Request": "true"})

    tree = lxml_html.document_fromstring(part.text)
    bad = tree.find(".//button[@aria-pressed='true']")
    assert (bad.text, bad.get("value")[-4:]) == ("Bad", "none")
    assert "1 question" in tree.find(".//*[@data-golden]").text_content()


def test_viewers_have_no_buttons_and_may_not_judge(
    client: Client, alice: Membership, leaflet: Document
) -> None:
    value = buttons(page(client, q="nausea"))["Good"].get("value")
    viewer = logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))

    assert buttons(page(viewer, q="nausea")) == {}
    assert viewer.post("/judge/", {"parameters": "q=nausea", "hit": value}).status_code == 403
    assert not Judgement.objects.exists()


@pytest.mark.parametrize("value", ["", "x", "1.2", "9" * 30, "1.2.none", "²"])
def test_what_no_button_sends_judges_nothing(client: Client, leaflet: Document, value: str) -> None:
    answer = client.post("/judge/", {"parameters": "q=nausea", "hit": value})
    assert answer.status_code == 404
    assert not Judgement.objects.exists()


def test_a_passage_that_is_gone_meanwhile_judges_its_document(
    client: Client, leaflet: Document
) -> None:
    client.post("/judge/", {"parameters": "q=nausea", "hit": f"{leaflet.pk}.999999.2"})
    assert Judgement.objects.get().chunk is None


def test_a_grade_that_is_none_is_refused(client: Client, leaflet: Document) -> None:
    answer = client.post("/judge/", {"parameters": "q=nausea", "hit": f"{leaflet.pk}.0.7"})
    assert answer.status_code == 400
    assert "There is no grade 7" in answer.text
