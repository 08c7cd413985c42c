"""Checked queries, run behind fences of PostgreSQL. Begin with `run_query`.

The transaction is rolled back in any case. In it, the role of requests makes temporary views over
the rows of the query's tables. The query is the body of a function that runs as the role of
`tables.sql.role`, which may read these views and nothing else, and cannot change its role there.
"""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from common.errors import RagsiteError
from common.rls import request_role, workspace_context
from tables.sql.checker import CheckedQuery, generate
from tables.sql.evidence import EVIDENCE_VIEW, find_evidence
from tables.sql.results import Cell
from tables.sql.role import reader_role
from tables.sql.views import sql_identifier, sql_literal

logger = logging.getLogger(__name__)

#: Rows of a result, and characters of one as JSON.
MAX_RESULT_ROWS, MAX_ROW_CHARACTERS = 100, 20_000
#: What one query may use. The limit of temporary files is set where the login may.
MAX_SECONDS = 10.0
_SETTINGS = """
    SET LOCAL work_mem = '32MB'; SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0;
    SET LOCAL standard_conforming_strings = on; SET LOCAL check_function_bodies = off;
    SET LOCAL ROLE NONE;
    SELECT set_config('temp_file_limit', '524288', true)
    WHERE has_parameter_privilege('temp_file_limit', 'SET');
"""
#: Classes of SQLSTATE that a query causes itself: syntax and names, values, cardinality, features,
#: resources, limits, states, cancellation, and writing where it may not.
_CAUSED_BY_QUERY = ("42", "22", "21", "0A", "25", "53", "54", "55", "57014", "2F", "38")


class QueryFailed(RagsiteError):
    """PostgreSQL refused or stopped the query; the message is for who wrote it."""

    code = "tables_query"


class NoReaderRole(RagsiteError):
    """The database has no role that may run such queries: check tables.W001."""

    code = "tables_role"


@dataclass(frozen=True, slots=True)
class QueryRun:
    """Rows of cells under `columns`, the first ones where `is_cut`; and the rows of evidence, as
    (table, ordinal), the first of `count`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_cut: bool
    evidence: tuple[tuple[int, int], ...]
    count: int


def run_query(query: CheckedQuery, *, workspace_ids: Collection[int]) -> QueryRun:
    """Run a checked query over its views, whose tables the reader may see and are of these
    workspaces. Raises QueryFailed and NoReaderRole."""
    evidence = find_evidence(query)
    statements = [generate(query.tree)]
    limits = [MAX_RESULT_ROWS + 1, MAX_RESULT_ROWS]
    views = {view.name: view.statement(query.names) for view in query.views}
    if evidence:
        sql, view = evidence
        statements.append(sql)
        views[EVIDENCE_VIEW.format(view.name)] = view.statement(query.names, with_row=True)
    results = run_as_reader(
        [
            f'SELECT left(to_json("_result".*)::text, {MAX_ROW_CHARACTERS + 1})'  # noqa: S608
            f' FROM ({statement}) AS "_result" LIMIT {limit}'
            for statement, limit in zip(statements, limits, strict=False)
        ],
        views,
        workspace_ids=workspace_ids,
    )
    rows = [_pairs(row) for row in results[0]]
    found = [_pairs(row) for row in results[1]] if len(results) > 1 else []
    places = [str(row[0][1]).partition(":") for row in found]
    columns = tuple(query.tree.named_selects)
    if rows:
        columns = tuple(name for name, _ in rows[0])
    return QueryRun(
        columns,
        tuple(tuple(_cell(value) for _, value in row) for row in rows[:MAX_RESULT_ROWS]),
        len(rows) > MAX_RESULT_ROWS,
        tuple((int(table), int(ordinal)) for table, _, ordinal in places),
        int(str(found[0][1][1])) if found else 0,
    )


def _pairs(row: str) -> list[tuple[str, object]]:
    if len(row) > MAX_ROW_CHARACTERS:
        raise QueryFailed(f"A row of the result is longer than {MAX_ROW_CHARACTERS:,} characters.")
    pairs: list[tuple[str, object]] = json.loads(row, object_pairs_hook=list)
    return pairs


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, bool | str):
        return value
    return float(value) if isinstance(value, int | float) else json.dumps(value)


def run_as_reader(
    statements: Sequence[str],
    views: Mapping[str, str],
    *,
    workspace_ids: Collection[int],
) -> list[list[str]]:
    """Texts that each of the statements selects, which may read `views`, SELECTs by name, and
    nothing else; only those of the first ones where a further one fails. Raises QueryFailed where
    the first does, and NoReaderRole."""
    with workspace_context(*workspace_ids):
        role, owner = reader_role(connection), request_role(connection)
        if not (role and owner):
            raise NoReaderRole("The database has no role that runs queries of language models.")
        setup = [_SETTINGS, f"SET LOCAL ROLE {owner};"]
        for view, source in views.items():
            name = f"pg_temp.{sql_identifier(view)}"
            setup.append(
                f"CREATE VIEW {name} WITH (security_barrier) AS {source};"
                f" GRANT SELECT ON {name} TO {role};"
            )
        setup.append(f"SET LOCAL ROLE {role};")
        # Not volatile, so that it may only read; SET ROLE is refused in a SECURITY DEFINER.
        setup += [
            f"CREATE FUNCTION pg_temp._asked{number}() RETURNS SETOF text LANGUAGE sql STABLE"
            f" SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {sql_literal(statement)};"
            for number, statement in enumerate(statements)
        ]
        setup.append(f"SET LOCAL ROLE {owner}; SET LOCAL transaction_read_only = on")
        seconds = MAX_SECONDS
        if settings.DATABASE_STATEMENT_SECONDS > 0:
            seconds = min(seconds, settings.DATABASE_STATEMENT_SECONDS)
        found: list[list[str]] = []
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(" ".join(setup))
                for number, _ in enumerate(statements):
                    cursor.execute(
                        f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))};"  # noqa: S608 (numbers)
                        f" SELECT * FROM pg_temp._asked{number}()"
                    )
                    cursor.nextset()
                    found.append([text for (text,) in cursor.fetchall()])
                transaction.set_rollback(True)
        except DatabaseError as error:
            failure = _failure(error, seconds)
            if not (found and isinstance(failure, QueryFailed)):
                raise failure from error
            logger.info("the rows of a query of a language model were not found: %s", failure)
    return found


def _failure(error: DatabaseError, seconds: float) -> Exception:
    """What to tell the writer of the query; the error itself where it is none of the query's."""
    cause = error.__cause__
    state = str(getattr(cause, "sqlstate", None) or "")
    if not state.startswith(_CAUSED_BY_QUERY):
        return error
    if state == "57014":
        return QueryFailed(f"The query took longer than {seconds:g} seconds. Ask for less.")
    if state == "42501":
        # What passed the check asked for more than its views.
        logger.error("a query of a language model was refused by the database: %s", error)
    diagnosis = getattr(cause, "diag", None)
    parts = [getattr(diagnosis, name, None) for name in ("message_primary", "message_hint")]
    return QueryFailed(" ".join(part for part in parts if part) or str(error))
