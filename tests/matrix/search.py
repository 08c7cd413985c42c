"""Searching: to begin with, found, explained, narrowed, nothing, wrong, waiting, degraded, kept."""

from playwright.sync_api import Page

from documents.models import Chunk, Collection
from documents.tests.factories import ChunkFactory, DocumentFactory
from search.judgements import judge
from search.models import SavedSearch
from tests.browser import hold
from tests.matrix.states import State, World

ASKED = "/?q=side+effects"
LONG = f"<b>\"'& {'w' * 80}"


def _many_authors(world: World) -> None:
    Collection.objects.filter(pk=world.leaflets.pk).update(facets=["author"])
    for number in range(12):
        document = DocumentFactory(collection=world.leaflets, title=f"Leaflet {number}")
        metadata = {"author": f"Author of the {number}th leaflet and its side effects"}
        ChunkFactory(document=document, metadata=metadata, heading_path=[LONG, "Side effects"])


def _reranked(world: World) -> None:
    backend = {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}
    world.settings.INFERENCE = {**world.settings.INFERENCE, "reranker": {"default": backend}}


def _judged(world: World) -> None:
    judge(
        collection=world.leaflets,
        question="side effects",
        document=world.leaflet,
        grade=2,
        user=world.alice,
    )


def _saved(world: World) -> None:
    owner = {"workspace": world.workspace, "user": world.alice}
    for name, parameters in {
        "Side effects": "q=side+effects",
        LONG: "q=nausea&mode=lexical&collection=leaflets&filter=year%3E%3D2020",
    }.items():
        SavedSearch.objects.create(**owner, name=name, parameters=parameters)


def _nothing_there(world: World) -> None:
    Collection.objects.filter(workspace=world.workspace).delete()


def _similar(world: World) -> str:
    return f"/similar/?chunk={Chunk.objects.filter(document=world.leaflet).latest('pk').pk}"


def _search_that_waits(page: Page) -> None:
    hold(page, "**/?q=slow*")
    page.get_by_role("searchbox").first.fill("slow")
    page.keyboard.press("Enter")


def _search_that_fails(page: Page) -> None:
    page.route("**/?q=lost*", lambda route: route.abort())
    page.get_by_role("searchbox").first.fill("lost")
    page.keyboard.press("Enter")


def _open_reasons(page: Page) -> None:
    page.locator("[data-why]").first.click()


def _open_further(page: Page) -> None:
    page.locator("[data-more]").first.click()


def _open_saved(page: Page) -> None:
    page.locator("summary[aria-label='Saved searches']").click()


HITS = "[data-hit]"
STATES = [
    State("start", lambda world: "/", ".tiles a"),
    State("explained", lambda world: f"{ASKED}&group=0&explain=1&type=text/markdown", "table"),
    State("why", lambda world: ASKED, ".reasons[open]", act=_open_reasons),
    State("by-graph", lambda world: f"{ASKED}&mode=graph&sort=newest", HITS),
    State("further", lambda world: "/?q=nausea+storing", ".further .hit", act=_open_further),
    State("misspelt", lambda world: "/?q=side+efects&mode=lexical", "[role=status], .suggestion"),
    State("nothing", lambda world: "/?q=zzzz&mode=lexical&collection=leaflets", ".blank h2"),
    State("behind-the-last", lambda world: f"{ASKED}&page=70", ".blank h2"),
    State("no-filter", lambda world: f"{ASKED}&filter=year%3E", "#filter-error", status=400),
    State("waiting", lambda world: "/", "[aria-busy] .waiting", act=_search_that_waits),
    State(
        "unanswered",
        lambda world: "/",
        "[role=alert]",
        act=_search_that_fails,
        expected=("ERR_FAILED",),
    ),
    State("reranked", lambda world: ASKED, ".switch", prepare=_reranked),
    State(
        "words-only", lambda world: f"{ASKED}+unheard", ".note.warn", prepare=World.without_embedder
    ),
    State(
        "no-meaning",
        lambda world: f"{ASKED}+unheard&mode=vector",
        ".blank h2",
        prepare=World.without_embedder,
        status=503,
    ),
    State("judged", lambda world: ASKED, "[aria-pressed=true]", prepare=_judged),
    State("saved-none", lambda world: "/saved/", ".blank h2"),
    State("saved", lambda world: "/saved/", ".savedlist", prepare=_saved),
    State("saved-menu", lambda world: ASKED, ".picks a", act=_open_saved),
    State("saved-gone", lambda world: "/saved/?name=Old&parameters=q%3Dx", ".note .button"),
    State("similar", _similar, HITS),
    State(
        "long-facet",
        lambda world: f"{ASKED}&collection=leaflets&filter=year!%3D1999#filters",
        "[data-facet]",
        prepare=_many_authors,
    ),
    State("empty", lambda world: "/", ".blank h2", prepare=_nothing_there),
]
