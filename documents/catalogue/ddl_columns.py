"""Columns and keys out of the parts of a parsed CREATE or ALTER TABLE."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from documents.catalogue.tables import Column, ForeignKey, Table, TableName


def name_of(table: exp.Expr, default_schema: str) -> TableName:
    """With the schema that it names, else the default one."""
    return TableName(schema=table.text("db") or default_schema, name=table.name)


def with_parts(table: Table, parts: Iterable[exp.Expr], *, dialect: str) -> Table:
    """The table with columns, keys and comments that `parts` tell of.

    A table that is referred to without a schema is one of the same schema.
    """
    for part in parts:
        if isinstance(part, exp.ColumnDef):
            table = _with_column(table, part, dialect)
        elif isinstance(part, exp.Constraint):
            table = with_parts(table, part.expressions, dialect=dialect)
        else:
            table = _with_constraint(table, part)
    return table


def names_in(part: exp.Expr | None) -> tuple[str, ...]:
    """The columns that a key names, in their order."""
    if part is None:
        return ()
    named = part.expressions or ([part.this] if isinstance(part.this, exp.Expr) else [])
    return tuple(name for name in map(_name, named) if name)


def _name(node: exp.Expr) -> str:
    """MySQL puts lengths, and others an order, around the name of a column."""
    while isinstance(node, exp.Ordered | exp.ColumnPrefix):
        node = node.this
    return str(node.name)


def _with_constraint(table: Table, part: exp.Expr) -> Table:
    match part:
        case exp.PrimaryKey():
            return replace(table, primary_key=names_in(part))
        case exp.ClusteredColumnConstraint() | exp.NonClusteredColumnConstraint():
            # T-SQL writes the columns of its primary key behind how they are stored.
            keys = tuple(map(_name, part.this)) if isinstance(part.this, list) else ()
            return table if table.primary_key else replace(table, primary_key=keys)
        case exp.ForeignKey():
            reference = part.args.get("reference")
            key = _reference(names_in(part), reference, table) if reference else None
            return replace(table, foreign_keys=(*table.foreign_keys, key)) if key else table
        case exp.UniqueColumnConstraint():
            names = names_in(part.this if isinstance(part.this, exp.Schema) else part)
            return replace(table, unique=(*table.unique, names)) if names else table
        case exp.SchemaCommentProperty():
            return replace(table, comment=part.this.name)
        case _:
            return table


def _with_column(table: Table, part: exp.ColumnDef, dialect: str) -> Table:
    kinds = [constraint.kind for constraint in part.constraints]
    type_ = part.args.get("kind")
    column = Column(
        name=part.name,
        type=type_.sql(dialect=dialect, comments=False) if type_ else "",
        is_nullable=not any(_forbids_null(kind) for kind in kinds),
        comment=next(_comments(kinds), "") or " ".join(map(str.strip, part.comments or ())),
    )
    table = replace(table, columns=(*table.columns, column))
    for kind in kinds:
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            table = replace(table, primary_key=(column.name,))
        elif isinstance(kind, exp.UniqueColumnConstraint):
            table = replace(table, unique=(*table.unique, (column.name,)))
        elif isinstance(kind, exp.Reference):
            key = _reference((column.name,), kind, table)
            table = replace(table, foreign_keys=(*table.foreign_keys, key))
    return table


def _forbids_null(kind: exp.Expr | None) -> bool:
    if isinstance(kind, exp.NotNullColumnConstraint):
        return not kind.args.get("allow_null")
    return isinstance(kind, exp.PrimaryKeyColumnConstraint)


def _comments(kinds: Iterable[exp.Expr | None]) -> Iterator[str]:
    return (kind.this.name for kind in kinds if isinstance(kind, exp.CommentColumnConstraint))


def _reference(columns: tuple[str, ...], reference: exp.Expr, table: Table) -> ForeignKey:
    target, schema = reference.this, table.name.schema
    if isinstance(target, exp.Schema):
        return ForeignKey(columns, name_of(target.this, schema), names_in(target))
    return ForeignKey(columns, name_of(target, schema))
