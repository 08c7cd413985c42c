"""Markup in every text that people, files and models bring: no page makes an element of it.

The rows of `tests/fuzzing/world.py` are filled with it, and every page that links lead to is read,
the admin's too.
"""

import json
from collections import Counter, deque
from functools import cache
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from django.db.models import CharField, Func, JSONField, Model, Value
from django.db.models.functions import Cast, Concat, Left
from django.test import Client
from django.urls import Resolver404, resolve
from lxml import html

from accounts.models import User, Workspace
from documents.models import Chunk, ChunkEdit, Collection, Document, IngestionItem, IngestionRun
from graph.models import Alias, Edge, Node
from memory.models import Context, Fact
from rag.models import Conversation, Message, Pipeline, Span, Trace
from search.models import Judgement, SavedSearch, SearchLog
from tests.fuzzing.world import make_world

#: Ends whatever it may stand in; then an element and an attribute that no page of ours has.
MARKUP = "'\"`></title></textarea></script></style>--><xss-made xss-held=1>\" xss-held='1' x="
TEXTS: dict[type[Model], tuple[str, ...]] = {
    User: ("first_name", "last_name"),
    Workspace: ("name",),
    Collection: ("name", "description", "rerank_instruction"),
    Document: ("title", "source", "error", "media_type"),
    Chunk: ("text", "context", "summary"),
    ChunkEdit: ("before", "after"),
    IngestionRun: ("source",),
    IngestionItem: ("name", "error"),
    Context: ("user_message", "assistant_response"),
    Fact: ("value",),
    Node: ("name",),
    Alias: ("form",),
    Edge: ("rel",),
    Conversation: ("title",),
    Message: ("content", "model", "error"),
    Pipeline: ("name", "description"),
    Trace: ("question", "answer", "error"),
    Span: ("input", "output", "error"),
    Judgement: ("question", "note"),
    SavedSearch: ("name",),
    SearchLog: ("query",),
}
MAPPINGS: dict[type[Model], str] = {
    Document: "metadata",
    Chunk: "metadata",
    Node: "props",
    Edge: "props",
}
#: Pages of one view differ in their rows only: one with each change, two at night.
PAGES_A_VIEW = (1, pytest.param(2, marks=pytest.mark.nightly))
LEFT_OUT = ("/api/", "/static/", "/docs/", "/logout", "/accounts/logout", "/admin/logout")


def filled() -> None:
    """Every text of every row is the markup, as far as it fits; the ends of mappings too."""
    for model, names in TEXTS.items():
        for name in names:
            longest = getattr(model._meta.get_field(name), "max_length", None)
            text = Concat(Cast("pk", CharField()), Value(MARKUP))
            model._default_manager.update(**{name: Left(text, longest) if longest else text})
    for model, name in MAPPINGS.items():
        mapping = Func(
            Value(MARKUP), Value(MARKUP), function="jsonb_build_object", output_field=JSONField()
        )
        model._default_manager.update(**{name: mapping})


@pytest.fixture
def browser(client: Client, media_root: object) -> Client:
    """A person of the world, who sees the admin as well."""
    make_world()
    filled()
    person = Conversation.objects.first().user
    person.is_staff = person.is_superuser = True
    person.save()
    client.force_login(person)
    return client


@cache
def view_of(path: str) -> str:
    """The view behind an address; empty where there is none to look at."""
    if path.startswith(LEFT_OUT):
        return ""
    try:
        return resolve(path).view_name
    except Resolver404:
        return ""


@pytest.mark.django_db
@pytest.mark.parametrize("pages", PAGES_A_VIEW)
def test_no_page_makes_an_element_of_a_text(browser: Client, pages: int) -> None:
    seen: Counter[str] = Counter()
    texts = 0
    waiting = deque(["/", f"/?q={MARKUP}", "/?q=key", "/admin/"])
    known = set(waiting)
    while waiting:
        address = waiting.popleft()
        answer = browser.get(address)
        assert answer.status_code < 500, address
        if answer.status_code in (301, 302):
            links = [answer["Location"]]
        elif answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
            if not body.strip():
                continue  # a part of a page with nothing to say
            tree = html.document_fromstring(body)
            check(tree, address)
            texts += b"xss-made" in body
            links = tree.xpath("//a/@href | //@hx-get | //form[@method='get']/@action")
        else:
            continue
        for link in links:
            joined = urldefrag(urljoin(f"http://testserver{address}", link.strip())).url
            parts = urlsplit(joined)
            view = view_of(parts.path) if parts.netloc == "testserver" else ""
            target = joined.removeprefix("http://testserver")
            if view and target not in known and seen[view] < pages:
                seen[view] += 1
                known.add(target)
                waiting.append(target)
    assert {"search", "admin:documents_document_change"} <= set(seen), sorted(seen)
    assert len(seen) > 40, sorted(seen)
    assert texts > 40


def check(tree: html.HtmlElement, address: str) -> None:
    """Neither the element nor the attribute is there, and data for scripts is whole."""
    made = tree.xpath("//xss-made | //*[@xss-held]")
    assert not made, (address, html.tostring(made[0])[:300])
    for link in tree.xpath("//@href | //@src | //@action | //@hx-get | //@hx-post"):
        assert not link.strip().lower().startswith(("javascript:", "data:text", "vbscript:"))
    for script in tree.xpath("//script[not(@src)]"):
        # Pages of the admin have scripts of their own, which its framework wrote.
        is_admin = address.startswith("/admin/")
        assert script.get("type") in {"application/json", "importmap"} or is_admin
        if script.get("type") == "application/json":
            json.loads(script.text or "null")
