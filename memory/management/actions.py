"""Actions of `manage.py memory`: one user's memory, and maintenance of all memories."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.template.defaultfilters import filesizeformat

from accounts.services import get_workspace_by_slug
from common.console import PARTIAL, CommandOutput, Options, terminal_safe
from common.errors import InvalidInput
from common.json_lines import write_output
from common.text import pluralized
from memory import services
from memory.embedding import embed_waiting
from memory.fact_keys import fact_key
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.options import MemoryQuery
from memory.scopes import UserScope, command_user, user_label, user_scope


def fact_data(row: Fact) -> dict[str, Any]:
    names = ("key", "value", "valid_from", "valid_to", "origin", "source_id")
    return {name.removesuffix("_id"): getattr(row, name) for name in names}


def item_data(row: ExtractionItem) -> dict[str, Any]:
    names = ("id", "user_id", "key", "state", "attempts", "error", "due_at", "last_message_at")
    return {"workspace": row.workspace.slug, **{name: getattr(row, name) for name in names}}


def pruning_data(row: Pruning) -> dict[str, Any]:
    names = ("user_id", "reason", "rows", "bytes", "until")
    return {"at": row.created_at, **{name: getattr(row, name) for name in names}}


def format_bytes(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")


def scope_from(options: Options) -> UserScope:
    """The scope of the named user. Raises NotFound and InvalidInput."""
    workspace = get_workspace_by_slug(options["workspace"])
    user_id = command_user(workspace, options["user"])
    scope = user_scope(workspace=workspace, user_id=user_id)
    if scope is None:
        raise InvalidInput(
            f"Of “{user_id}” nothing is kept: that is nobody. Name a user by --user.",
            field="user",
        )
    return scope


# --- contexts and facts --------------------------------------------------------------------------


def search_contexts(options: Options) -> CommandOutput:
    """Search a user's contexts; prints scores with each hit."""
    asked = {name: options[name] for name in MemoryQuery.model_fields}
    scope = scope_from(options)
    result = services.search_memory(scope=scope, query=asked.pop("q"), **asked)
    names = ("user_message", "assistant_response", "conversation", "created_at", "origin")
    hits = [
        {**asdict(hit.ranked), **{name: getattr(hit.context, name) for name in names}}
        for hit in result.hits
    ]
    columns = ("score", "relevance", "created_at", "user_message", "assistant_response")
    rows = [[str(hit["id"]), *(hit[name] for name in columns)] for hit in hits]
    told = [
        f"{len(hits)} found, {result.below} below the threshold, of {result.searched:,}"
        f" of {_whose(scope)}"
    ]
    told += [f"out of order: {name}" for name in result.degraded]
    return CommandOutput(
        {
            "query": options["q"],
            "hits": hits,
            "below": result.below,
            "searched": result.searched,
            "degraded": result.degraded,
            "milliseconds": result.milliseconds,
        },
        [f"{' · '.join(told)} · {result.milliseconds:.0f} ms"],
        ("id", "score", "relevance", "said", "user", "assistant"),
        rows,
    )


def list_facts(options: Options) -> CommandOutput:
    """Facts that hold now, or held at a time."""
    scope = scope_from(options)
    rows = services.get_all_facts(scope=scope, as_of=options["as_of"])
    return _fact_table(rows, f"{pluralized(len(rows), 'fact')} of {_whose(scope)}")


def set_fact(options: Options) -> CommandOutput:
    """Set a fact, from now or from a given time."""
    scope = scope_from(options)
    change = services.set_fact(
        scope=scope, key=options["key"], value=options["value"], at=options["at"]
    )
    assert change is not None  # of somebody
    before = fact_data(change.superseded) if change.superseded else None
    done = f"{change.fact.key} is set" if change.changed else f"{change.fact.key} was known already"
    done += f", of {_whose(scope)}"
    if change.superseded:
        done += f"; before: {terminal_safe(change.superseded.value)}"
    data = {"changed": change.changed, "fact": fact_data(change.fact), "superseded": before}
    return CommandOutput(data, (done,))


def list_history(options: Options) -> CommandOutput:
    """All values that a key ever had."""
    rows = services.history(scope=scope_from(options), key=options["key"])
    return _fact_table(rows, pluralized(len(rows), "value") if rows else _not_found(options))


def forget_rows(options: Options) -> CommandOutput:
    """Delete a fact with its history, all contexts of a question, or contexts by id."""
    scope = scope_from(options)
    if options["key"] is not None:
        removed = services.forget_fact(scope=scope, key=options["key"])
        told = _removed_message(removed, "value") if removed else _not_found(options)
        return CommandOutput({"facts": removed, "contexts": 0}, (told,))
    if options["question"] is not None:
        removed = services.clear_memory(scope=scope, question=options["question"])
    else:
        removed = services.forget_contexts(scope=scope, ids=options["context"])
    return CommandOutput({"facts": 0, "contexts": removed}, (_removed_message(removed, "context"),))


# --- a whole memory ------------------------------------------------------------------------------


def export_user(options: Options) -> CommandOutput:
    """Everything as JSON Lines, to a file or standard output."""
    lines = services.export_memory(scope=scope_from(options))
    written = write_output(options["output"], lambda file: sum(1 for _ in map(file.write, lines)))
    return CommandOutput(warnings=[pluralized(written - 1, "row")])  # the header is no row


def erase_user(options: Options) -> CommandOutput:
    """Erase everything with --yes; else say what would be erased."""
    scope = scope_from(options)
    if not options["yes"]:
        used = services.usage(scope=scope)
        raise InvalidInput(
            f"Nothing is erased of {_whose(scope)}. {pluralized(used.rows, 'context')} and"
            f" {pluralized(used.facts, 'fact')} would be, with"
            " what waits to be read: say --yes."
        )
    erased = services.erase_memory(scope=scope)
    told = ", ".join(f"{number:,} {kind}" for kind, number in asdict(erased).items())
    return CommandOutput(asdict(erased), (f"erased: {told}",))


def show_usage(options: Options) -> CommandOutput:
    """Usage of the quotas, and the latest prunings."""
    scope = scope_from(options)
    used = services.usage(scope=scope)
    prunings = [pruning_data(row) for row in used.prunings]
    lines = (
        f"memory of {_whose(scope)}",
        f"contexts  {_used_of(used.rows, used.max_rows, str)}",
        f"bytes     {_used_of(used.bytes, used.max_bytes, format_bytes)}",
        f"facts     {_used_of(used.facts, used.max_facts, str)}",
        *(
            f"pruned    {row['at']:%Y-%m-%d %H:%M}: {pluralized(row['rows'], 'context')},"
            f" {format_bytes(row['bytes'])}, for {row['reason']}"
            for row in prunings
        ),
    )
    names = ("rows", "bytes", "facts", "max_rows", "max_bytes", "max_facts")
    return CommandOutput(
        {**{name: getattr(used, name) for name in names}, "prunings": prunings}, lines
    )


def _fact_table(rows: list[Fact], summary: str) -> CommandOutput:
    cells = [(row.key, row.value, row.valid_from, row.valid_to, row.origin) for row in rows]
    heads = ("key", "value", "from", "to", "origin")
    return CommandOutput([fact_data(row) for row in rows], (summary,), heads, cells)


def _whose(scope: UserScope) -> str:
    return terminal_safe(user_label(scope))


def _not_found(options: Options) -> str:
    return f"Fact not found: {fact_key(options['key'])}"


def _used_of(used: int, limit: int | None, format_value: Callable[[int], str]) -> str:
    return (
        f"{format_value(used)} of {format_value(limit)}"
        if limit is not None
        else f"{format_value(used)}, no limit"
    )


def _removed_message(number: int, what: str) -> str:
    return f"{pluralized(number, what)} {'is' if number == 1 else 'are'} removed"


State = ExtractionItem.State


def prune_all(options: Options) -> CommandOutput:
    """Prune what exceeds the quotas, of all users."""
    done = services.prune_to_quotas()
    rows = [
        (str(row.workspace_id), row.user_id, row.rows, format_bytes(row.bytes), row.reason)
        for row in done
    ]
    heads = ("workspace", "user", "contexts", "bytes", "quota")
    return CommandOutput(
        [pruning_data(row) for row in done],
        (
            f"Removed {pluralized(sum(row.rows for row in done), 'context')}"
            f" of {pluralized(len(done), 'user')}.",
        ),
        heads,
        rows,
    )


def embed_all(options: Options) -> CommandOutput:
    """Embed rows without a vector, of all users."""
    done = embed_waiting()
    left = sum(model.objects.unembedded().count() for model in (Context, Fact))
    told = (f"{done:,} embedded", *([f"{left:,} were refused by the model"] if left else []))
    return CommandOutput(
        {"embedded": done, "refused": left}, (", ".join(told),), code=PARTIAL if left else 0
    )


def list_extractions(options: Options) -> CommandOutput:
    """List the extraction queue, dead items first; or retry items."""
    rows = ExtractionItem.objects.select_related("workspace").defer("messages", "taken")
    if options["workspace"] is not None:
        rows = rows.filter(workspace=get_workspace_by_slug(options["workspace"]))
    if options["user"] is not None:
        rows = rows.filter(user_id=options["user"])
    if options["state"] is not None:
        rows = rows.filter(state=options["state"])
    else:
        rows = rows.exclude(state=State.IDLE)
    if options["retry"] is not None:
        dead = rows.filter(state=State.DEAD)
        wanted = dead.filter(pk__in=options["retry"]) if options["retry"] else dead
        ids = list(wanted.values_list("pk", flat=True))
        retried = services.retry_extractions(item_ids=ids)
        return CommandOutput({"retried": retried}, (f"{retried:,} are in the queue again",))
    shown = list(rows.order_by("state", "due_at", "pk")[: max(options["n"], 0)])
    cells = [
        (str(row.pk), row.state, row.workspace.slug, row.user_id, row.key, row.attempts, row.error)
        for row in shown
    ]
    heads = ("id", "state", "workspace", "user", "conversation", "attempts", "error")
    return CommandOutput(
        [item_data(row) for row in shown],
        (f"{len(shown):,} of {rows.count():,}",),
        heads,
        cells,
    )
