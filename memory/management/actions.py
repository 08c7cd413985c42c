"""What `manage.py memory` does with one user's memory, action by action."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, BinaryIO

from common.errors import InvalidInput
from common.showing import Shown, table_of, visible
from common.wording import counted
from documents.management.naming import workspace_named
from documents.management.writing import written
from memory import services
from memory.keys import fact_key
from memory.management.rows import context_of, fact_of, pruning_of, size_in_words
from memory.models import Fact
from memory.scopes import UserScope, user_of_commands, user_scope

Options = Mapping[str, Any]


def scope_from(options: Options) -> UserScope:
    """The user who is named. Raises NotFound, and InvalidInput for nobody."""
    workspace = workspace_named(options["workspace"])
    user_id = options["user"]
    if user_id is None:
        user_id = user_of_commands(workspace)
    scope = user_scope(workspace=workspace, user_id=user_id)
    if scope is None:
        raise InvalidInput(
            f"Of “{user_id}” nothing is kept: that is nobody. Name a user by --user.",
            field="user",
        )
    return scope


# --- contexts and facts --------------------------------------------------------------------------


def search(options: Options) -> Shown:
    """What has to do with a question."""
    result = services.search_memory(
        scope=scope_from(options),
        query=options["query"],
        max_results=options["k"],
        threshold=options["threshold"],
        recency=options["recency"],
        mode=options["mode"],
    )
    hits = [{**asdict(hit.ranked), **context_of(hit.context)} for hit in result.hits]
    columns = ("score", "relevance", "created_at", "user_message", "assistant_response")
    rows = [[str(hit["id"]), *(hit[name] for name in columns)] for hit in hits]
    told = [f"{len(hits)} found, {result.below} below the threshold, of {result.searched:,}"]
    told += [f"out of order: {name}" for name in result.degraded]
    return Shown(
        {
            "query": options["query"],
            "hits": hits,
            "below": result.below,
            "searched": result.searched,
            "degraded": result.degraded,
            "milliseconds": result.milliseconds,
        },
        (f"{' · '.join(told)} · {result.milliseconds:.0f} ms",),
        table_of(("id", "score", "relevance", "said", "user", "assistant"), rows) if rows else None,
    )


def facts(options: Options) -> Shown:
    """Everything held true, now or then."""
    rows = services.get_all_facts(scope=scope_from(options), as_of=options["as_of"])
    return _facts(rows, _counted(len(rows), "fact"))


def set_fact(options: Options) -> Shown:
    """A value from now, or from then, on."""
    change = services.set_fact(
        scope=scope_from(options), key=options["key"], value=options["value"], at=options["at"]
    )
    assert change is not None  # of somebody
    before = fact_of(change.superseded) if change.superseded else None
    done = f"{change.fact.key} is set" if change.changed else f"{change.fact.key} was known already"
    if change.superseded:
        done += f"; before: {visible(change.superseded.value)}"
    data = {"changed": change.changed, "fact": fact_of(change.fact), "superseded": before}
    return Shown(data, (done,))


def history(options: Options) -> Shown:
    """All values of a key."""
    rows = services.history(scope=scope_from(options), key=options["key"])
    return _facts(rows, _counted(len(rows), "value") if rows else _not_found(options))


def forget(options: Options) -> Shown:
    """A fact with its history, all that was answered to a question, or contexts by number."""
    scope = scope_from(options)
    if options["key"] is not None:
        removed = services.forget_fact(scope=scope, key=options["key"])
        told = _removed(removed, "value") if removed else _not_found(options)
        return Shown({"facts": removed, "contexts": 0}, (told,))
    if options["question"] is not None:
        removed = services.clear_memory(scope=scope, question=options["question"])
    else:
        removed = services.forget_contexts(scope=scope, ids=options["context"])
    return Shown({"facts": 0, "contexts": removed}, (_removed(removed, "context"),))


# --- a whole memory ------------------------------------------------------------------------------


def export(options: Options) -> Shown:
    """All of it as JSON Lines, to a file or standard output."""
    scope = scope_from(options)

    def write(file: BinaryIO) -> int:
        lines = 0
        for line in services.export_memory(scope=scope):
            file.write(line.encode())
            lines += 1
        return lines - 1  # the header is no row

    rows = written(options["output"], write)
    return Shown({"rows": rows}, (counted(rows, "row"),))


def erase(options: Options) -> Shown:
    """All of it, where --yes is said; else what would go."""
    scope = scope_from(options)
    if not options["yes"]:
        used = services.usage(scope=scope)
        raise InvalidInput(
            f"Nothing is erased. {counted(used.rows, 'context')} and"
            f" {counted(used.facts, 'fact')} would be, with"
            " what waits to be read: say --yes."
        )
    erased = services.erase_memory(scope=scope)
    told = ", ".join(f"{number:,} {kind}" for kind, number in asdict(erased).items())
    return Shown(asdict(erased), (f"erased: {told}",))


def usage(options: Options) -> Shown:
    """What it takes up, of what it may."""
    used = services.usage(scope=scope_from(options))
    prunings = [pruning_of(row) for row in used.prunings]
    lines = (
        f"contexts  {_of(used.rows, used.max_rows, str)}",
        f"bytes     {_of(used.bytes, used.max_bytes, size_in_words)}",
        f"facts     {_of(used.facts, used.max_facts, str)}",
        *(
            f"pruned    {row['at']:%Y-%m-%d %H:%M}: {counted(row['rows'], 'context')},"
            f" {size_in_words(row['bytes'])}, for {row['reason']}"
            for row in prunings
        ),
    )
    names = ("rows", "bytes", "facts", "max_rows", "max_bytes", "max_facts")
    return Shown({**{name: getattr(used, name) for name in names}, "prunings": prunings}, lines)


def _facts(rows: list[Fact], told: str) -> Shown:
    cells = [(row.key, row.value, row.valid_from, row.valid_to, row.origin) for row in rows]
    heads = ("key", "value", "from", "to", "origin")
    return Shown([fact_of(row) for row in rows], (told,), table_of(heads, cells) if cells else None)


def _not_found(options: Options) -> str:
    return f"Fact not found: {fact_key(options['key'])}"


def _of(used: int, most: int | None, shown: Callable[[int], str]) -> str:
    return f"{shown(used)} of {shown(most)}" if most is not None else f"{shown(used)}, no limit"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _removed(number: int, what: str) -> str:
    return f"{_counted(number, what)} {'is' if number == 1 else 'are'} removed"
