"""What language models read, write and cost in the last 30 days: by day, model, user, purpose, and
workspace. Begin with `read_usage`."""

from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import F, QuerySet, Sum
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from accounts.members import require_owner
from accounts.models import User, Workspace
from common.charts import Series, format_short
from common.rls import bypass_rls
from common.translation import format_number
from dashboard.charts import Chart
from dashboard.figures import Figures, range_of
from model_servers.models import ModelUsage
from model_servers.services import require_manager

COUNTS = ("calls", "estimated_calls", "input_tokens", "output_tokens")
#: Of each table, those with the most tokens.
MAX_ROWS = 100


def require_reader(*, user: Any, workspace: Workspace | None) -> None:
    """Raise Forbidden unless the user owns the workspace or, where it is None, runs the site."""
    if workspace is None:
        require_manager(user=user, workspace=None)
    else:
        require_owner(user=user, workspace=workspace)


def read_usage(*, workspace: Workspace | None) -> Figures:
    """Figures of a workspace, or of all where it is None, for callers that have checked the right
    to them. Names of users are "" for the site itself and None for those who were deleted; `cost`
    is None without a price."""
    range = range_of("30d", now=timezone.localtime())
    rows = ModelUsage.objects.filter(day__gte=range.start.date()).order_by()
    if workspace is not None:
        rows = rows.filter(workspace=workspace)
    # Who reads all workspaces need not be a member of any.
    with bypass_rls() if workspace is None else nullcontext():
        days = _grouped(rows, "day")
        tables = {
            "models": _grouped(rows, "model"),
            "users": _grouped(rows, "user"),
            "purposes": _grouped(rows, "purpose"),
            "workspaces": _grouped(rows, "workspace__slug") if workspace is None else [],
        }
    people = User.objects.filter(pk__in=[row["name"] for row in tables["users"]])
    names: dict[int | None, str] = {None: ""}
    names |= people.values_list("pk", "username")
    for row in tables["users"]:
        row["name"] = names.get(row["name"])
    by_day = {row["name"]: row for row in days}
    costs = [row["cost"] for row in days if row["cost"] is not None]
    return {
        "range": range,
        "currency": settings.MODEL_CURRENCY,
        **{
            name: tuple(by_day.get(start.date(), {}).get(name, 0) for start in range.starts)
            for name in ("input_tokens", "output_tokens")
        },
        "costs": tuple(by_day.get(start.date(), {}).get("cost") for start in range.starts),
        "total": {
            **{name: sum(row[name] for row in days) for name in COUNTS},
            "cost": sum(costs) if costs else None,
        },
        **tables,
    }


def _grouped(rows: QuerySet[Any], field: str) -> list[Figures]:
    """Sums by the values of the field, its `name`, most tokens first."""
    sums = {f"sum_{name}": Sum(name) for name in (*COUNTS, "cost")}
    found = rows.values(name=F(field)).annotate(**sums)
    largest = found.order_by(-(F("sum_input_tokens") + F("sum_output_tokens")), "name")
    return [
        {name.removeprefix("sum_"): value for name, value in row.items()}
        for row in largest[:MAX_ROWS]
    ]


def format_cost(cost: float | None) -> str:
    """In the site's currency; two decimals, or four for less than 1."""
    if cost is None:
        return "–"
    return f"{format_number(cost, 2 if cost >= 1 or not cost else 4)} {settings.MODEL_CURRENCY}"


def usage_charts(usage: Figures) -> list[Chart]:
    """Tokens by day and, where models have a price, costs."""
    total = usage["total"]
    about = gettext("in {label}").format(label=usage["range"].label)
    tokens = Chart(
        "tokens",
        gettext("Tokens"),
        range=usage["range"],
        series=[
            Series(gettext("Input"), usage["input_tokens"], "one"),
            Series(gettext("Output"), usage["output_tokens"], "two"),
        ],
        headline=intcomma(total["input_tokens"] + total["output_tokens"]),
        about=about,
        empty=gettext("What language models read and write appears here."),
        link=reverse("models"),
        link_text=gettext("Models"),
    )
    if total["cost"] is None:
        return [tokens]
    costs = Chart(
        "costs",
        gettext("Costs"),
        range=usage["range"],
        series=[Series(gettext("Costs"), usage["costs"])],
        headline=format_cost(total["cost"]),
        about=about,
        empty=gettext("What language models cost appears here."),
        format_value=format_cost,
        format_axis=lambda value: format_short(value) if value >= 1 else f"{value:.2g}",
        integers=False,
    )
    return [tokens, costs]


def usage_tables(usage: Figures) -> list[tuple[str, list[Figures]]]:
    """Titles and rows of the tables of the page, with names as people read them."""
    for row in usage["users"]:
        if not row["name"]:
            row["name"] = gettext("Deleted user") if row["name"] is None else gettext("The site")
    labels = dict(ModelUsage.Purpose.choices)
    for row in usage["purposes"]:
        row["name"] = labels.get(row["name"], row["name"])
    for rows in (usage[name] for name in ("models", "users", "purposes", "workspaces")):
        for row in rows:
            row["cost"] = format_cost(row["cost"])
    titles = (
        ("workspaces", gettext("By workspace")),
        ("models", gettext("By model")),
        ("users", gettext("By user")),
        ("purposes", gettext("By purpose")),
    )
    return [(title, usage[name]) for name, title in titles if usage[name]]
