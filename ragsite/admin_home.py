"""The admin's first page and menu: what needs attention, and the models by purpose."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_noop

from accounts.models import Change
from common import features
from common.shards import current_shard
from documents.models import Document, IngestionRun
from graph.models import Extraction
from memory.models import ExtractionItem
from rag.models import Trace
from ragsite.shards import shard_states
from search.log import open_questions
from search.models import Judgement
from sources.models import DataSource

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
        gettext_noop("Answers"),
        (
            (
                gettext_noop("Open questions"),
                "contact_support",
                "admin:search_searchlog_open_questions",
            ),
            (gettext_noop("Rate answers"), "thumbs_up_down", "admin:search_judgement_add"),
            (gettext_noop("Judgements"), "rule", "search.Judgement"),
            (gettext_noop("Evaluations"), "monitoring", "search.Evaluation"),
            (gettext_noop("Searches"), "manage_search", "search.SearchLog"),
            (gettext_noop("Saved searches"), "bookmark", "search.SavedSearch"),
        ),
    ),
    (
        gettext_noop("Documents"),
        (
            (gettext_noop("Collections"), "folder_open", "documents.Collection"),
            (gettext_noop("Documents"), "description", "documents.Document"),
            (gettext_noop("Passages"), "notes", "documents.Chunk"),
            (gettext_noop("Edited passages"), "edit_note", "documents.ChunkEdit"),
            (gettext_noop("Tables"), "table", "tables.Table"),
            (gettext_noop("Groups of tables"), "table_view", "tables.TableGroup"),
            (gettext_noop("Layouts of tables"), "view_column", "tables.TableLayout"),
            (gettext_noop("Runs"), "sync", "documents.IngestionRun"),
            (gettext_noop("Run items"), "draft", "documents.IngestionItem"),
            (gettext_noop("Sources"), "cloud_sync", "sources.DataSource"),
            (gettext_noop("Source items"), "draft", "sources.DataSourceItem"),
            (gettext_noop("Runs of sources"), "sync_alt", "sources.DataSourceRun"),
            (gettext_noop("Source notices"), "mail", "sources.DataSourceNotice"),
        ),
    ),
    (
        gettext_noop("Graph"),
        (
            (gettext_noop("Nodes"), "hub", "graph.Node"),
            (gettext_noop("Edges"), "timeline", "graph.Edge"),
            (gettext_noop("Names"), "label", "graph.Alias"),
            (gettext_noop("Reading"), "auto_stories", "graph.Extraction"),
        ),
    ),
    (
        gettext_noop("Memory"),
        (
            (gettext_noop("Facts"), "lightbulb", "memory.Fact"),
            (gettext_noop("Turns"), "forum", "memory.Context"),
            (gettext_noop("Reading"), "hearing", "memory.ExtractionItem"),
            (gettext_noop("Prunings"), "content_cut", "memory.Pruning"),
        ),
    ),
    (
        gettext_noop("Chat and pipelines"),
        (
            (gettext_noop("Conversations"), "chat", "rag.Conversation"),
            (gettext_noop("Messages"), "chat_bubble", "rag.Message"),
            (gettext_noop("Summaries"), "summarize", "rag.Summary"),
            (gettext_noop("Pipelines"), "account_tree", "rag.Pipeline"),
            (gettext_noop("Database connections"), "database", "rag.DatabaseConnection"),
            (gettext_noop("Traces"), "route", "rag.Trace"),
            (gettext_noop("Trace spans"), "steps", "rag.Span"),
        ),
    ),
    (
        gettext_noop("People"),
        (
            (gettext_noop("History"), "history", "accounts.Change"),
            (gettext_noop("Users"), "person", "accounts.User"),
            (gettext_noop("Groups"), "group", "auth.Group"),
            (gettext_noop("Workspaces"), "workspaces", "accounts.Workspace"),
            (gettext_noop("Memberships"), "badge", "accounts.Membership"),
            (gettext_noop("Groups of workspaces"), "groups", "accounts.WorkspaceGroup"),
            (gettext_noop("Members of groups"), "group_add", "accounts.GroupMember"),
            (gettext_noop("Invitations"), "mail", "accounts.Invitation"),
            (gettext_noop("API keys"), "key", "accounts.ApiKey"),
            (gettext_noop("Linked identities"), "badge", "accounts.Identity"),
            (gettext_noop("Second factors"), "phonelink_lock", "accounts.SecondFactor"),
            (gettext_noop("Sessions"), "devices", "accounts.LoginSession"),
        ),
    ),
    (
        gettext_noop("Internals"),
        (
            (gettext_noop("Embedding spaces"), "deployed_code", "documents.EmbeddingSpace"),
            ("Re-embeddings", "swap_horiz", "documents.Reembedding"),
            (gettext_noop("Model connections"), "smart_toy", "model_servers.ModelConnection"),
            (gettext_noop("Models of workspaces"), "rule_settings", "model_servers.WorkspaceModel"),
            (gettext_noop("Usage of models"), "payments", "model_servers.ModelUsage"),
            (gettext_noop("Search index segments"), "segment", "documents.LexicalSegment"),
            (gettext_noop("Waiting for vectors"), "hourglass", "documents.StagedDocument"),
            (
                gettext_noop("Vectors of unfinished documents"),
                "hourglass_top",
                "documents.StagedVectors",
            ),
            (gettext_noop("Pages read by OCR"), "document_scanner", "documents.ScannedPage"),
            (gettext_noop("Idempotency records"), "inventory", "accounts.IdempotencyRecord"),
            (gettext_noop("Questions measured"), "quiz", "search.EvaluatedQuestion"),
            (gettext_noop("Samples"), "show_chart", "dashboard.Sample"),
        ),
    ),
)

#: Texts of Unfold, which comes without translations.
UNFOLD_TEXTS = (
    gettext_noop("Search apps and models..."),
    gettext_noop("Type to search"),
    gettext_noop("Loading more results..."),
    gettext_noop("No results found"),
    gettext_noop("No results matching your query"),
    gettext_noop("Recent searches"),
    gettext_noop("No recent searches"),
    gettext_noop("Filters"),
    gettext_noop("Apply Filters"),
    gettext_noop("Reset filters"),
    gettext_noop("Clear all filters"),
    gettext_noop("Light"),
    gettext_noop("Dark"),
    gettext_noop("System"),
    gettext_noop("General"),
    gettext_noop("More actions"),
    gettext_noop("Select all rows"),
    gettext_noop("Expand row"),
    gettext_noop("Toggle password visibility"),
    gettext_noop("This page yielded into no results. Create a new item or reset your filters."),
)


def admin_home(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Context of the admin's first page besides the list of models."""
    context["title"] = gettext("Curation")
    context["attention_items"] = list(_attention_items(request))
    if settings.DATABASE_SHARDS:
        context["shards"] = shard_states()
        context["shown_shard"] = current_shard() or "main"
    if request.user.has_perm("accounts.view_change"):
        context["changes"] = Change.objects.select_related("user", "workspace")[:LISTED_CHANGES]
    return context


def shard_badge(request: HttpRequest) -> list[str]:
    """Which server's rows the admin shows, for Unfold's header."""
    return [gettext("Server {name}").format(name=current_shard() or "main"), "info"]


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
    if not features.is_on("graph"):
        unread = unread.none()
    if not features.is_on("memory"):
        unlearnt = unlearnt.none()
    return [
        (
            gettext("Runs with failures"),
            gettext("in {days} days; see the reason and retry the files").format(days=DAYS),
            failed_runs,
            {"state__exact": run.FAILED},
        ),
        (
            gettext("Documents that failed"),
            gettext("each shows its error"),
            failed,
            {"status__exact": status.FAILED},
        ),
        (
            gettext("Waiting documents"),
            gettext("for an hour or longer; check that a worker is running"),
            stuck,
            {"status__exact": status.QUEUED},
        ),
        (
            gettext("Sources with a problem"),
            gettext("late, failing or stopped; each shows the reason"),
            DataSource.objects.exclude(problem=""),
            {"problem__gt": ""},
        ),
        (
            gettext("Failed graph extractions"),
            gettext("documents missing from the graph"),
            unread,
            {"state__exact": Extraction.State.DEAD},
        ),
        (
            gettext("Failed conversations"),
            gettext("no facts learned from them"),
            unlearnt,
            {"state__exact": ExtractionItem.State.DEAD},
        ),
        (
            gettext("Pipelines that failed"),
            gettext("in {days} days: the trace shows the step").format(days=DAYS),
            broken,
            {"state__exact": "failed"},
        ),
        (
            gettext("Judgements"),
            gettext("used to measure and tune the search"),
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
            still = (
                gettext("; {unjudged} without a judgement").format(unjudged=unjudged)
                if unjudged
                else ""
            )
            yield {
                "title": gettext("Open questions"),
                "detail": gettext("without a good match in {days} days{still}").format(
                    days=DAYS, still=still
                ),
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
            "title": gettext("Back to the site"),
            "icon": "arrow_back",
            "link": reverse("search"),
            "active": False,
        }
    ]
    groups: list[dict[str, Any]] = [{"items": site}]
    for heading, entries in MENU:
        items = [item for entry in entries if (item := _menu_entry(request, *entry))]
        if items:
            groups.append(
                {"title": gettext(heading), "collapsible": heading == "Internals", "items": items}
            )
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
    return {"title": gettext(title), "icon": icon, "link": address, "active": is_active}
