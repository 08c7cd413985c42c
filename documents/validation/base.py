"""Checks, their findings, and the SQL that runs several of them at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection

from common import features

T = TypeVar("T")

#: Ids that a finding names.
MAX_EXAMPLES = 5
#: A command whose run has not changed for this many leases counts as dead; parsing may take long.
ABANDONED_LEASES = 10


@dataclass(frozen=True, slots=True)
class Scope:
    """The collection to check; None means all collections."""

    collection_id: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that the SQL of probes may use."""
        lease = timedelta(seconds=settings.INGESTION_LEASE_SECONDS)
        return {
            "collection": self.collection_id,
            "lease": lease,
            "abandoned": lease * ABANDONED_LEASES,
            "vectors": features.is_on("vectors"),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must not occur. `rows` names what the ids are of; `fix` fixes all in scope
    and returns how many. `find` returns the ids or names where it occurs; not needed within an
    SqlProbe."""

    name: str
    rows: str
    problem: str
    cure: str
    fix: Callable[[Scope], int] | None = None
    find: Callable[[Scope], Sequence[int | str]] = lambda scope: ()

    @property
    def checks(self) -> Sequence["Check"]:
        """The check itself, as a probe of one."""
        return (self,)

    def findings(self, scope: Scope) -> Iterable["Finding"]:
        """Nothing if it does not occur."""
        if found := self.find(scope):
            yield Finding(self, len(found), tuple(found[:MAX_EXAMPLES]))


@dataclass(frozen=True, slots=True)
class Finding:
    """How often a check failed, with examples: ids or file names."""

    check: Check
    count: int
    examples: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        named = ", ".join(map(str, self.examples))
        more = ", …" if self.count > len(self.examples) else ""
        return (
            f"{self.check.name}: {self.count:,} {self.check.rows} ({named}{more})"
            f" {self.check.problem}. {self.check.cure}"
        )


@dataclass(frozen=True, slots=True)
class SqlProbe:
    """A SELECT of `id` and, named like the checks, whether the row has the problem.

    Run once for all of its checks. It is one statement, so it sees the tables as of one moment
    while others write.
    """

    sql: str
    checks: tuple[Check, ...]

    def findings(self, scope: Scope) -> Iterable[Finding]:
        columns = ", ".join(
            f"count(*) FILTER (WHERE {check.name}),"
            f" (array_agg(id) FILTER (WHERE {check.name}))[1:{MAX_EXAMPLES}]"
            for check in self.checks
        )
        statement = f"SELECT {columns} FROM ({self.sql}) AS looked_at"  # noqa: S608 (our own text)
        with connection.cursor() as cursor:
            cursor.execute(statement, scope.parameters)
            row = cursor.fetchone()
        for check, count, examples in zip(self.checks, row[::2], row[1::2], strict=True):
            if count:
                yield Finding(check, count, tuple(sorted(examples)))


def fix_each(
    find: Callable[[Scope], Sequence[T]], fix: Callable[[T], object]
) -> Callable[[Scope], int]:
    """A fix that does `fix` to everything that `find` returns."""

    def fix_all(scope: Scope) -> int:
        found = find(scope)
        for each in found:
            fix(each)
        return len(found)

    return fix_all


def execute(sql: str, scope: Scope) -> int:
    """Run a fixing statement; returns the number of changed rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, scope.parameters)
        return int(cursor.rowcount)
