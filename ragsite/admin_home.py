"""The admin's first page and menu: what needs attention, and the models by purpose."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from accounts.models import Change
from documents.models import Document, IngestionRun
from graph.models import Extraction
from memory.models import ExtractionItem
from rag.models import Trace
from search.log import open_questions
from search.models import Judgement

#: Counted one by one; more are “more than”.
MAX_COUNTED = 1_000
OPEN_QUESTIONS = 100
OPEN_QUESTIONS_PLACE = 3  # among the other items
DAYS = 7
STUCK_AFTER = timedelta(hours=1)
LISTED_CHANGES = 10

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
            ("Pages read by OCR", "document_scanner", "documents.ScannedPage"),
            ("Kept answers", "inventory", "accounts.IdempotencyRecord"),
            ("Questions measured", "quiz", "search.EvaluatedQuestion"),
            ("Samples", "show_chart", "dashboard.Sample"),
        ),
    ),
)


def admin_home(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Context of the admin's first page besides the list of models."""
    context["title"] = "Curation"
    context["attention_items"] = list(_attention_items(request))
    if request.user.has_perm("accounts.view_change"):
        context["changes"] = Change.objects.select_related("user", "workspace")[:LISTED_CHANGES]
    return context


def _counted_rows() -> list[tuple[str, str, QuerySet[Any], dict[str, str]]]:
    """Title, detail, rows, and the filter of their list; one without a filter is never urgent."""
    now = timezone.now()
    since = now - timedelta(days=DAYS)
    run, status = IngestionRun.State, Document.Status
    failed_runs = IngestionRun.objects.filter(
        started_at__gte=since, state__in=[run.FAILED, run.PARTIAL]
    )
    failed = Document.objects.filter(status=status.FAILED, is_current=True)
    stuck = Document.objects.filter(status=status.QUEUED, updated_at__lt=now - STUCK_AFTER)
    unread = Extraction.objects.filter(state=Extraction.State.DEAD)
    unlearnt = ExtractionItem.objects.filter(state=ExtractionItem.State.DEAD)
    broken = Trace.objects.filter(state="failed", started_at__gte=since)
    return [
        (
            "Runs with failures",
            f"in {DAYS} days: look why, and try their files again",
            failed_runs,
            {"state__exact": run.FAILED},
        ),
        (
            "Documents that failed",
            "each says what is wrong with it",
            failed,
            {"status__exact": status.FAILED},
        ),
        (
            "Documents that wait",
            "for an hour or longer: is a worker running?",
            stuck,
            {"status__exact": status.QUEUED},
        ),
        (
            "Readings for the graph given up",
            "documents of which the graph knows nothing",
            unread,
            {"state__exact": Extraction.State.DEAD},
        ),
        (
            "Conversations given up",
            "nothing could be learnt from them",
            unlearnt,
            {"state__exact": ExtractionItem.State.DEAD},
        ),
        (
            "Pipelines that failed",
            f"in {DAYS} days: the trace shows the step",
            broken,
            {"state__exact": "failed"},
        ),
        (
            "Judged answers",
            "what the search is measured by, and learns from",
            Judgement.objects.all(),
            {},
        ),
    ]


def _attention_items(request: HttpRequest) -> Iterator[dict[str, Any]]:
    """What may need attention and the user may see: `count` rows at `address`, or more than that;
    0 is good.
    """
    for place, (title, detail, rows, narrowed) in enumerate(_counted_rows()):
        if place == OPEN_QUESTIONS_PLACE and request.user.has_perm("search.view_searchlog"):
            found = open_questions(days=DAYS, limit=OPEN_QUESTIONS + 1)
            unjudged = sum(not each.judged for each in found[:OPEN_QUESTIONS])
            still = f"; {unjudged} not judged yet" if unjudged else ""
            yield {
                "title": "Open questions",
                "detail": f"in {DAYS} days found nothing near{still}",
                "address": f"{reverse('admin:search_searchlog_open_questions')}?days={DAYS}",
                "count": min(len(found), OPEN_QUESTIONS),
                "is_more": len(found) > OPEN_QUESTIONS,
                "is_urgent": False,
            }
        meta = rows.model._meta
        if not request.user.has_perm(f"{meta.app_label}.view_{meta.model_name}"):
            continue
        count = rows.order_by().values("pk")[: MAX_COUNTED + 1].count()
        address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        yield {
            "title": title,
            "detail": detail,
            "address": f"{address}?{urlencode(narrowed)}" if narrowed else address,
            "count": min(count, MAX_COUNTED),
            "is_more": count > MAX_COUNTED,
            "is_urgent": bool(narrowed) and count > 0,
        }


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The menu for Unfold, limited to what the user may see."""
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
        items = [item for entry in entries if (item := _menu_entry(request, *entry))]
        if items:
            groups.append({"title": heading, "collapsible": heading == "Inside", "items": items})
    return groups


def _menu_entry(request: HttpRequest, title: str, icon: str, target: str) -> dict[str, Any] | None:
    if target.startswith("admin:"):
        label, model_name = target.removeprefix("admin:").split("_")[:2]
        address = reverse(target)
    else:
        try:
            model = apps.get_model(target)
        except LookupError:
            return None
        label, model_name = model._meta.app_label, str(model._meta.model_name)
        address = reverse(f"admin:{label}_{model_name}_changelist")
    if not request.user.has_perm(f"{label}.view_{model_name}"):
        return None
    # The page is the entry's, or one below it that no other entry has.
    below = request.path.removeprefix(address)
    is_below = below != request.path and below.split("/")[0] not in {"open-questions", "add"}
    is_active = request.path == address or is_below
    return {"title": title, "icon": icon, "link": address, "active": is_active}
