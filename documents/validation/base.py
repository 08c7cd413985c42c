"""What a check is, and what it finds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from django.conf import settings
from django.db import connection

#: Ids that a finding names.
EXAMPLES = 5
#: A command that says nothing of its run for so many leases has died: it may parse for long.
ABANDONED_LEASES = 10


@dataclass(frozen=True, slots=True)
class Scope:
    """One collection, or everything."""

    collection_id: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What the SQL of probes may name."""
        lease = timedelta(seconds=settings.INGESTION_LEASE_SECONDS)
        return {
            "collection": self.collection_id,
            "lease": lease,
            "abandoned": lease * ABANDONED_LEASES,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must not be. `rows` says what its ids are of; `fix` mends all in scope and
    returns how many."""

    name: str
    rows: str
    problem: str
    cure: str
    fix: Callable[[Scope], int] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """How often it is so, and where, for example: ids, or names of files."""

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


class Probe(Protocol):
    """Looks for several problems at once."""

    @property
    def checks(self) -> Sequence[Check]: ...

    def findings(self, scope: Scope) -> Iterable[Finding]:
        """Only those that there are."""


@dataclass(frozen=True, slots=True)
class SqlProbe:
    """A SELECT of `id` and, named as the checks are, whether the row has the problem.

    Read once for all of its checks. It is one statement, so it sees the tables as of one moment
    while others write.
    """

    sql: str
    checks: tuple[Check, ...]

    def findings(self, scope: Scope) -> Iterable[Finding]:
        with connection.cursor() as cursor:
            cursor.execute(self._statement, scope.parameters)
            row = cursor.fetchone()
        for check, count, examples in zip(self.checks, row[::2], row[1::2], strict=True):
            if count:
                yield Finding(check, count, tuple(sorted(examples)))

    @property
    def _statement(self) -> str:
        columns = ", ".join(
            f"count(*) FILTER (WHERE {check.name}),"
            f" (array_agg(id) FILTER (WHERE {check.name}))[1:{EXAMPLES}]"
            for check in self.checks
        )
        return f"SELECT {columns} FROM ({self.sql}) AS looked_at"  # noqa: S608 (our own text)


def execute(sql: str, scope: Scope) -> int:
    """Run a statement that mends; how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, scope.parameters)
        return int(cursor.rowcount)
