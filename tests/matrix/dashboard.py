"""The dashboard and the page of quality: empty, with a month behind them, while measuring."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from accounts.models import Role
from dashboard.models import Sample
from documents.models import Collection, Document
from documents.tests.factories import MembershipFactory, RunFactory
from model_servers.models import ModelUsage
from search.judgements import judge, question_key
from search.models import EvaluatedQuestion, Evaluation, SearchLog
from tests.matrix.states import State, World

QUESTIONS = ("what are common side effects", "how is it stored", "how much may one take at once")
VAIN = ("price of copper", "Kündigungsfrist Mietvertrag " * 4)
DAYS = 28


def _month(world: World) -> None:
    """Four weeks of searching, reading and waiting."""
    now = timezone.now()
    for day in range(DAYS):
        _searches(world, day)
        Sample.objects.create(
            workspace=world.workspace,
            at=now - timedelta(days=day, minutes=1),
            documents=400 - 13 * day,
            chunks=61_000 - 1_900 * day,
            waiting=40 * (day % 7 == 3),
        )
    for day in range(0, DAYS, 5):
        ended = now - timedelta(days=day)
        run = RunFactory(collection=world.leaflets, finished_at=ended)
        type(run).objects.filter(pk=run.pk).update(
            started_at=ended - timedelta(seconds=7), ready=50 + day, failed=day % 3, chunks=4_000
        )


def _lived_in(world: World) -> None:
    _month(world)
    # Three questions judged, and six evaluations of them.
    document: Document = world.leaflet
    for question in QUESTIONS:
        judge(
            collection=world.leaflets,
            question=question,
            document=document,
            grade=1,
            user=world.alice,
        )
    for number in range(6):
        _evaluation(world.leaflets, number)


def _searches(world: World, day: int) -> None:
    for number in range(3 + day % 5):
        vain = number == 2
        row = SearchLog.objects.create(
            workspace=world.workspace,
            user=world.alice,
            query=VAIN[day % 2] if vain else QUESTIONS[0],
            mode="hybrid",
            total=0 if vain and day % 3 else 12,
            refused=vain and not day % 3,
            confidence=None if number % 3 == 0 else ("none" if vain else ("high", "low")[day % 2]),
            documents=[] if vain else [world.leaflet.pk],
            milliseconds=11.0 + 7 * number + day,
            source=("web", "chat", "chat" if vain else "api")[number % 3],
        )
        SearchLog.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=day))


def _evaluation(collection: Collection, number: int) -> None:
    figures = (0.4 + 0.08 * number, 1 - 0.1 * number, 0.0)
    at = timezone.now() - timedelta(days=5 - number)
    made = Evaluation.objects.create(
        workspace=collection.workspace,
        collection=collection,
        state="done",
        cause="nightly" if number % 2 else "judged",
        questions=3,
        judgements=3,
        ndcg=sum(figures) / 3,
        recall=0.5 + 0.05 * number,
        mrr=0.6,
        finished_at=at,
    )
    Evaluation.objects.filter(pk=made.pk).update(created_at=at)
    for question, ndcg in zip(QUESTIONS, figures, strict=True):
        EvaluatedQuestion.objects.create(
            workspace=collection.workspace,
            evaluation=made,
            question_sha256=question_key(question),
            ndcg=ndcg,
            recall=round(ndcg),
            first_rank=2 if ndcg else None,
            good=1,
            found=1 if ndcg else 0,
        )


def _measuring(world: World) -> None:
    Evaluation.objects.create(workspace=world.workspace, collection=world.leaflets, state="running")


def _failed(world: World) -> None:
    Evaluation.objects.open().update(
        state="failed",
        error="Not everything works just now (vector), and what the answers are worth without it"
        " would mislead. It is measured again when it works.",
        finished_at=timezone.now(),
    )


def _viewer(world: World) -> None:
    """Somebody else owns the workspace, and alice may only look."""
    MembershipFactory(workspace=world.workspace, role=Role.OWNER)
    world.membership.role = Role.VIEWER
    world.membership.save()
    other = MembershipFactory(workspace=world.workspace, role=Role.EDITOR)
    SearchLog.objects.update(user=other.user)


def _open_figures(page: Page) -> None:
    page.locator("#figures-searches summary").click()
    box = page.locator("#chart-times svg[data-parts]").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)


def _quality(world: World) -> str:
    return f"/dashboard/quality/{world.leaflets.slug}/"


def _models_used(world: World) -> None:
    """Four weeks of two models, one of which has a price and a long name."""
    for day in range(DAYS):
        for model, price, user in (
            ("qwen3:4b", None, world.alice),
            ("openrouter/a-provider/a-model-with-a-long-name-2026-11", 0.0123, None),
        ):
            ModelUsage.objects.create(
                workspace=world.workspace,
                user=user,
                model=model,
                purpose="answer" if user else "graph",
                day=timezone.localdate() - timedelta(days=day),
                calls=3 + day,
                estimated_calls=day % 2,
                input_tokens=40_000 + 1_500 * (day % 7),
                output_tokens=2_000 + 300 * (day % 5),
                cost=price,
            )


STATES = [
    State("empty", lambda world: "/dashboard/", ".void"),
    State("quality-empty", lambda world: "/dashboard/quality/", ".blank"),
    State(
        "month",
        lambda world: "/dashboard/?range=30d",
        "#chart-searches rect",
        prepare=_lived_in,
    ),
    State("week", lambda world: "/dashboard/", "#figures-searches[open] td", act=_open_figures),
    State("quality", lambda world: "/dashboard/quality/", "#answers"),
    State("quality-of", _quality, ".questions tbody tr"),
    State("quality-none", lambda world: f"{_quality(world)}?show=new", ".questions p"),
    State("quality-running", _quality, ".pill.busy", prepare=_measuring),
    State("quality-failed", _quality, ".note.bad", prepare=_failed),
    State("models-empty", lambda world: "/dashboard/models/", ".void"),
    State("models", lambda world: "/dashboard/models/", ".list", prepare=_models_used),
    State("viewer", lambda world: "/dashboard/?range=30d", ".unanswered p", prepare=_viewer),
]
