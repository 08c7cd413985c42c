"""The admin's first page and its menu: what needs a look, and everything by what it is for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from accounts.models import Change
from documents.models import Document, IngestionRun
from graph.models import Extraction
from memory.models import ExtractionItem
from rag.models import Trace
from search.models import Judgement
from search.open_questions import open_questions

#: Counted one by one; more are “more than”.
COUNTED = 1_000
OPEN_QUESTIONS = 100
DAYS = 7
STUCK_AFTER = timedelta(hours=1)
SHOWN_CHANGES = 10

#: The menu: headings, and under each a title, an icon and the model or the address.
MENU: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Answers",
        (
            ("Open questions", "contact_support", "admin:search_searchlog_open_questions"),
            ("Judge answers", "thumbs_up_down", "admin:search_judgement_add"),
            ("Judgements", "rule", "search.Judgement"),
            ("Evaluations", "monitoring", "search.Evaluation"),
            ("Searches", "manage_search", "search.SearchLog"),
            ("Saved searches", "bookmark", "search.SavedSearch"),
        ),
    ),
    (
        "Documents",
        (
            ("Collections", "folder_open", "documents.Collection"),
            ("Documents", "description", "documents.Document"),
            ("Passages", "notes", "documents.Chunk"),
            ("Edited passages", "edit_note", "documents.ChunkEdit"),
            ("Runs", "sync", "documents.IngestionRun"),
            ("Files of runs", "draft", "documents.IngestionItem"),
        ),
    ),
    (
        "Graph",
        (
            ("Nodes", "hub", "graph.Node"),
            ("Edges", "timeline", "graph.Edge"),
            ("Names", "label", "graph.Alias"),
            ("Reading", "auto_stories", "graph.Extraction"),
        ),
    ),
    (
        "Memory",
        (
            ("Facts", "lightbulb", "memory.Fact"),
            ("Turns", "forum", "memory.Context"),
            ("Reading", "hearing", "memory.ExtractionItem"),
            ("Prunings", "content_cut", "memory.Pruning"),
        ),
    ),
    (
        "Chat and pipelines",
        (
            ("Conversations", "chat", "rag.Conversation"),
            ("Messages", "chat_bubble", "rag.Message"),
            ("Pipelines", "account_tree", "rag.Pipeline"),
            ("Traces", "route", "rag.Trace"),
            ("Steps of traces", "steps", "rag.Span"),
        ),
    ),
    (
        "People",
        (
            ("History", "history", "accounts.Change"),
            ("Users", "person", "accounts.User"),
            ("Groups", "group", "auth.Group"),
            ("Workspaces", "workspaces", "accounts.Workspace"),
            ("Memberships", "badge", "accounts.Membership"),
            ("API keys", "key", "accounts.ApiKey"),
        ),
    ),
    (
        "Inside",
        (
            ("Embedding spaces", "deployed_code", "documents.EmbeddingSpace"),
            ("Re-embeddings", "swap_horiz", "documents.Reembedding"),
            ("Search index segments", "segment", "documents.LexicalSegment"),
            ("Waiting for vectors", "hourglass", "documents.StagedDocument"),
            ("Kept answers", "inventory", "accounts.IdempotencyRecord"),
            ("Questions measured", "quiz", "search.EvaluatedQuestion"),
            ("Samples", "show_chart", "dashboard.Sample"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Matter:
    """Something that may need a look. `count` may be cut off (`is_more`); 0 is as it should be."""

    title: str
    told: str
    address: str
    count: int
    is_more: bool = False
    is_urgent: bool = False


def index(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """What the admin's first page shows besides the list of models."""
    context["title"] = "Curation"
    context["matters"] = [each for each in _matters(request) if each is not None]
    if request.user.has_perm("accounts.view_change"):
        context["changes"] = Change.objects.select_related("user", "workspace")[:SHOWN_CHANGES]
    return context


def _matters(request: HttpRequest) -> Iterable[Matter | None]:
    now = timezone.now()
    since = now - timedelta(days=DAYS)
    state = IngestionRun.State
    runs = IngestionRun.objects.filter(started_at__gte=since)
    yield _rows(
        request,
        "Runs with failures",
        f"in {DAYS} days: look why, and try their files again",
        runs.filter(state__in=[state.FAILED, state.PARTIAL]),
        is_urgent=True,
        state__exact=state.FAILED,
    )
    yield _rows(
        request,
        "Documents that failed",
        "each says what is wrong with it",
        Document.objects.filter(status=Document.Status.FAILED, is_current=True),
        is_urgent=True,
        status__exact=Document.Status.FAILED,
    )
    yield _rows(
        request,
        "Documents that wait",
        "for an hour or longer: is a worker running?",
        Document.objects.filter(status=Document.Status.QUEUED, updated_at__lt=now - STUCK_AFTER),
        is_urgent=True,
        status__exact=Document.Status.QUEUED,
    )
    if request.user.has_perm("search.view_searchlog"):
        found = open_questions(days=DAYS, limit=OPEN_QUESTIONS + 1)
        address = reverse("admin:search_searchlog_open_questions")
        shown, is_more = min(len(found), OPEN_QUESTIONS), len(found) > OPEN_QUESTIONS
        unjudged = sum(not each.judged for each in found[:shown])
        told = f"in {DAYS} days found nothing near"
        yield Matter(
            "Open questions",
            f"{told}; {unjudged} not judged yet" if unjudged else told,
            f"{address}?days={DAYS}",
            shown,
            is_more,
        )
    yield _rows(
        request,
        "Readings for the graph given up",
        "documents of which the graph knows nothing",
        Extraction.objects.filter(state=Extraction.State.DEAD),
        is_urgent=True,
        state__exact=Extraction.State.DEAD,
    )
    yield _rows(
        request,
        "Conversations given up",
        "nothing could be learnt from them",
        ExtractionItem.objects.filter(state=ExtractionItem.State.DEAD),
        is_urgent=True,
        state__exact=ExtractionItem.State.DEAD,
    )
    yield _rows(
        request,
        "Pipelines that failed",
        f"in {DAYS} days: the trace shows the step",
        Trace.objects.filter(state="failed", started_at__gte=since),
        is_urgent=True,
        state__exact="failed",
    )
    yield _rows(
        request,
        "Judged answers",
        "what the search is measured by, and learns from",
        Judgement.objects.all(),
    )


def _rows(
    request: HttpRequest,
    title: str,
    told: str,
    rows: QuerySet[Any],
    *,
    is_urgent: bool = False,
    **narrowed: Any,
) -> Matter | None:
    """Counted, with the list of them; None for who may not see that."""
    meta = rows.model._meta
    if not request.user.has_perm(f"{meta.app_label}.view_{meta.model_name}"):
        return None
    count = rows.order_by().values("pk")[: COUNTED + 1].count()
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return Matter(
        title,
        told,
        f"{address}?{urlencode(narrowed)}" if narrowed else address,
        min(count, COUNTED),
        is_more=count > COUNTED,
        is_urgent=is_urgent and count > 0,
    )


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The menu, as Unfold takes it: of what the user may see."""
    site = [
        {
            "title": "Back to the site",
            "icon": "arrow_back",
            "link": reverse("search"),
            "active": False,
        }
    ]
    groups: list[dict[str, Any]] = [{"items": site}]
    for heading, entries in MENU:
        items = [item for entry in entries if (item := _entry(request, *entry))]
        if items:
            groups.append({"title": heading, "collapsible": heading == "Inside", "items": items})
    return groups


def _entry(request: HttpRequest, title: str, icon: str, target: str) -> dict[str, Any] | None:
    if target.startswith("admin:"):
        label, model_name = target.removeprefix("admin:").split("_")[:2]
        address = reverse(target)
    else:
        model = _model(target)
        if model is None:
            return None
        label, model_name = model._meta.app_label, str(model._meta.model_name)
        address = reverse(f"admin:{label}_{model_name}_changelist")
    if not request.user.has_perm(f"{label}.view_{model_name}"):
        return None
    return {"title": title, "icon": icon, "link": address, "active": _is_at(request, address)}


def _model(label: str) -> type[Model] | None:
    find: Callable[[str], type[Model]] = apps.get_model
    try:
        return find(label)
    except LookupError:
        return None


def _is_at(request: HttpRequest, address: str) -> bool:
    """Whether the page is the entry's, or one below it that no other entry has."""
    if request.path == address:
        return True
    others = {"open-questions", "add"}
    below = request.path.removeprefix(address)
    return below != request.path and below.split("/")[0] not in others
