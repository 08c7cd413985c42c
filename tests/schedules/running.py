"""A schedule, in a workspace of its own. Several may share the servers, and each other's faults."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

from django.db import DatabaseError, connections, transaction

from accounts.services import get_or_create_workspace
from documents.models import Collection, Document, StagedDocument
from documents.services import default_space
from tests.schedules.checking import differences, is_settled, what_waits
from tests.schedules.people import People
from tests.schedules.plan import Step, schedule
from tests.schedules.servers import Servers, wait_for

T = TypeVar("T")
#: After which a fault comes though the site is not as far as it was to be.
MOMENT_SECONDS = 0.3
SETTLED_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`wrong` is empty where all is as it must be."""

    seed: int
    seconds: float
    refused: int
    wrong: tuple[str, ...]


class Fault(Thread):
    """Something breaks while others go on."""

    def __init__(self, step: Step, servers: Servers, collection: Collection) -> None:
        super().__init__(name=str(step))
        self._step, self._servers, self._collection = step, servers, collection
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._wait_for_the_moment()
            worker = ("first", "second")[self._step.key % 2]
            getattr(self._servers, self._step.name)(worker)
        except BaseException as error:
            self._error = error
        finally:
            connections.close_all()

    def end(self) -> None:
        self.join()
        if self._error is not None:
            raise self._error

    def _wait_for_the_moment(self) -> None:
        has_come = MOMENTS[self._step.moment]
        with suppress(TimeoutError, DatabaseError):  # then it comes now
            wait_for(lambda: has_come(self._collection), what="", seconds=MOMENT_SECONDS)


def run_schedule(seed: int, servers: Servers) -> Outcome:
    """Do all of it, wait until the site has come to rest, and compare."""
    try:
        return _run_schedule(seed, servers)
    except Exception as error:
        error.add_note(f"in the schedule with seed {seed}")
        raise
    finally:
        connections.close_all()


def _run_schedule(seed: int, servers: Servers) -> Outcome:
    began = monotonic()
    collection = _surely(lambda: _collection(f"schedule-{seed}"))
    people, fault = People(collection), None
    for step in schedule(seed):
        if not step.is_fault:
            people.act(step)
            continue
        if fault is not None:
            fault.end()
        fault = Fault(step, servers, collection)
    if fault is not None:
        fault.end()
    servers.heal()
    try:
        wait_for(lambda: _rests(collection, servers), what="", seconds=SETTLED_SECONDS)
    except TimeoutError:
        waits = what_waits(collection)
        return Outcome(seed, monotonic() - began, people.refused, (f"it does not rest:\n{waits}",))
    wrong = tuple(_surely(lambda: differences(collection, people.expected)))
    return Outcome(seed, monotonic() - began, people.refused, wrong)


@transaction.atomic
def _collection(name: str) -> Collection:
    return Collection.objects.create(
        workspace=get_or_create_workspace(slug=name),
        slug="notes",
        name="Notes",
        space=default_space(),
        graph=Collection.Graph.RULES,
    )


def _rests(collection: Collection, servers: Servers) -> bool:
    servers.keep_up()
    try:
        return is_settled(collection)
    except DatabaseError:  # a connection that was cut
        connections.close_all()
        return False


def _surely(work: Callable[[], T]) -> T:
    """Others may break things still."""
    while True:
        try:
            return work()
        except DatabaseError:
            connections.close_all()


def _documents(collection: Collection) -> Any:
    return Document.objects.filter(collection=collection)


MOMENTS: dict[str, Callable[[Collection], bool]] = {
    "at_once": lambda collection: True,
    "claimed": lambda collection: _documents(collection).exclude(claimed_by=None).exists(),
    "staged": lambda collection: StagedDocument.objects.filter(
        workspace=collection.workspace_id
    ).exists(),
    "loaded": lambda collection: _documents(collection).filter(status="ready").exists(),
}
