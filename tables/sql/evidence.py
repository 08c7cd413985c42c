"""The rows that a query was computed from: `find_evidence`."""

from collections.abc import Sequence

from sqlglot import exp

from tables.sql.checker import CheckedQuery, generate
from tables.sql.views import ROW, View

#: How the view is called that has `ROW`, too. No other name begins with an underscore.
EVIDENCE_VIEW = "_{}"
_PLACE = "_place"

#: Rows that are named.
MAX_EVIDENCE = 20


def find_evidence(query: CheckedQuery) -> tuple[str, View] | None:
    """SQL that gives the first rows of evidence, as `table:ordinal`, and how many there are, with
    the view that they are in; None where they cannot be named: of joins, unions and what reads
    other queries.

    They are the rows that are listed; those that the condition leaves for an aggregate; those of
    the groups that are listed.
    """
    tree = query.tree
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("with_", "joins")):
        return None
    source = tree.args["from_"].this if tree.args.get("from_") else None
    if not isinstance(source, exp.Table):
        return None
    view = next(view for view in query.views if view.name == source.name)
    row = exp.alias_(exp.column(ROW, table=source.alias_or_name), _PLACE)
    groups = _group_keys(tree, query)
    if groups is None and not tree.args.get("distinct"):
        listed = _with_rows(tree.copy())
        listed.append("expressions", row)
        return _first_rows(listed), view
    rows = exp.Select(expressions=[row])
    for part in ("from_", "where"):
        if value := tree.args.get(part):
            rows.set(part, value.copy())
    _with_rows(rows)
    if groups and any(tree.args.get(part) for part in ("having", "limit", "offset")):
        listed = tree.copy()
        keys = [f"_group{at}" for at, _ in enumerate(groups)]
        for key, group in zip(keys, groups, strict=True):
            listed.append("expressions", exp.alias_(group.copy(), key, quoted=True))
        inner = exp.Select(expressions=[exp.column(key, table="_groups") for key in keys])
        inner = inner.from_(listed.subquery("_groups"))
        left: exp.Expr = exp.Tuple(expressions=[group.copy() for group in groups])
        rows = rows.where(exp.In(this=left, query=inner.subquery()))
    return _first_rows(rows), view


def _with_rows(select: exp.Select) -> exp.Select:
    """The same, from the view that has `ROW`."""
    source = select.args["from_"].this
    name = exp.to_identifier(EVIDENCE_VIEW.format(source.name))
    source.replace(exp.alias_(exp.Table(this=name), source.alias_or_name, table=True))
    return select


def _first_rows(rows: exp.Select) -> str:
    return (
        f'SELECT "r"."{_PLACE}", count(*) OVER () AS "count"'  # noqa: S608 (generated)
        f' FROM ({generate(rows)}) AS "r" LIMIT {MAX_EVIDENCE}'
    )


def _group_keys(tree: exp.Select, query: CheckedQuery) -> Sequence[exp.Expr] | None:
    """What a query groups by, [] where all its rows are one group; None if it does not group."""
    group = tree.args.get("group")
    if group is None:
        parts = [*tree.expressions, *filter(None, [tree.args.get("having")])]
        is_aggregate = any(
            call.find_ancestor(exp.Window, exp.Select) is tree
            for part in parts
            for call in part.find_all(exp.AggFunc)
        )
        return [] if is_aggregate else None
    columns = {each.name for view in query.views for each in view.columns}
    outputs = {each.alias: each.this for each in tree.expressions if isinstance(each, exp.Alias)}
    keys = []
    for each in group.expressions:
        if each.is_int and 0 < int(each.name) <= len(tree.expressions):
            keys.append(tree.expressions[int(each.name) - 1].unalias())
        elif isinstance(each, exp.Column) and not each.table and each.name not in columns:
            keys.append(outputs.get(each.name, each))
        else:
            keys.append(each)
    return keys
