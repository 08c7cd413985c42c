"""Pipelines and traces: listed, tried, edited, refused, run, failed, filtered to none."""

from django.utils import timezone
from playwright.sync_api import Page, expect

from rag.models import Pipeline, Trace
from rag.pipelines.validation import templates
from rag.services.pipelines import run_pipeline
from tests.matrix.states import State, World

MOVE = "When does the firm leave Mill Street?"
LONG = f"<b>\"'& {'w' * 100}"


def _ran(world: World) -> None:
    for _ in run_pipeline("rag", MOVE, context=world.asking):
        pass


def _failed(world: World) -> None:
    own = {"workspace": world.workspace, "user": world.alice, "pipeline": "rag"}
    now = timezone.now()
    Trace.objects.create(
        **own,
        question=LONG,
        state="failed",
        error=f"No answer. {LONG}",
        started_at=now,
        ended_at=now,
    )
    Trace.objects.create(**own, question="Why?", state="running", started_at=now)


def _own(world: World) -> None:
    mine = {**templates()["rag"].to_json(), "id": "mine", "name": LONG[:60]}
    Pipeline.objects.create(
        workspace=world.workspace, slug="mine", name=mine["name"], definition=mine
    )


def _open_all(page: Page) -> None:
    page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")


def _run(page: Page) -> None:
    expect(page.locator("[data-composer][data-ready]")).to_be_visible()
    page.get_by_label("Question", exact=True).fill(MOVE)
    page.keyboard.press("Enter")


def _save_nonsense(page: Page) -> None:
    box = page.get_by_label("Definition")
    box.fill(box.input_value().replace('"similarity_search"', '"no_such_tool"'))
    page.get_by_role("button", name="Check and save").click()


def _trace(state: str) -> str:
    return f"/traces/{Trace.objects.filter(state=state).latest('pk').pk}/"


STATES = [
    State("not-run", lambda world: "/pipelines/research/", "text=You have not run it yet"),
    State("traces-none", lambda world: "/traces/", ".blank"),
    State("new", lambda world: "/new-pipeline/?from=codegen", "textarea"),
    State(
        "refused",
        lambda world: "/new-pipeline/?from=rag",
        "[role=alert]",
        act=_save_nonsense,
        expected=("status of 400",),
    ),
    State("tried", lambda world: "/pipelines/rag/", "[data-trace] a", act=_run),
    State("run", lambda world: "/pipelines/rag/", ".runstats", prepare=_ran, act=_open_all),
    State("trace", lambda world: _trace("done"), ".cited", act=_open_all),
    State("trace-failed", lambda world: _trace("failed"), ".note.bad", prepare=_failed),
    State("trace-running", lambda world: _trace("running"), "text=No step has finished yet"),
    State("traces", lambda world: "/traces/", ".list"),
    State("own", lambda world: "/pipelines/", "#own", prepare=_own),
]
