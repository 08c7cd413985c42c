"""A set as memories: every turn archived under its user."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

from dateutil import parser as dates

from accounts.services import get_or_create_workspace
from memory.embedding import embed_waiting
from memory.models import Context
from memory.scopes import UserScope, user_scope
from memory.storing.contexts import put_context
from search.evaluation.dataset import Dataset, DatasetError, Entry
from search.evaluation.evaluate import WORKSPACE
from search.evaluation.progress import Progress, nobody_watches

#: Where a turn's date may stand, besides its title.
DATE_FIELDS = ("created_at", "date", "timestamp", "time")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Kept:
    """The set as memories: whose, until when each goes, and which turns a context stands for."""

    scopes: Mapping[str, UserScope]
    ends: Mapping[str, datetime]
    turns: Mapping[int, Sequence[str]]
    field: str

    def user_of(self, query: Entry) -> str:
        """The user that a question is asked of. Raises DatasetError for one without turns."""
        user = _user(query, self.field)
        if user not in self.scopes:
            raise DatasetError(f"Question {query.id} is asked of {user!r}, who has no turn.")
        return user


@contextmanager
def archived(
    dataset: Dataset, *, scope_field: str, on_progress: Progress = nobody_watches
) -> Iterator[tuple[Kept, float]]:
    """The set's turns as memories of its users, and the seconds that took; removed afterwards."""
    workspace = get_or_create_workspace(slug=WORKSPACE)
    names = dict.fromkeys(_user(entry, scope_field) for entry in dataset.corpus)
    scopes = {}
    for name in names:
        scope = user_scope(workspace=workspace, user_id=f"{dataset.name}/{name}"[:255])
        assert scope is not None  # it has a name
        scopes[name] = scope
    started = perf_counter()
    try:
        kept = _archive(dataset, scopes, scope_field, on_progress)
        for scope in scopes.values():
            embed_waiting(scope=scope)
        yield kept, perf_counter() - started
    finally:
        users = [scope.user_id for scope in scopes.values()]
        Context.objects.filter(workspace=workspace, user_id__in=users).delete()


def _archive(
    dataset: Dataset, scopes: Mapping[str, UserScope], field: str, on_progress: Progress
) -> Kept:
    turns: dict[int, list[str]] = {}
    ends: dict[str, datetime] = {}
    before: dict[str, datetime] = {}
    for number, entry in enumerate(dataset.corpus, start=1):
        user = _user(entry, field)
        moment = moment_of(entry)
        if user in before and moment <= before[user]:
            # Turns of one sitting carry its time; they follow each other.
            moment = before[user] + timedelta(seconds=1)
        before[user] = moment
        ends[user] = max(moment, ends.get(user, moment))
        stored = put_context(
            scope=scopes[user],
            user_message=entry.text or entry.title,
            conversation=user[:255],
            at=moment,
        )
        turns.setdefault(stored.id, []).append(entry.id)
        on_progress("archive", number, len(dataset.corpus))
    return Kept(scopes=scopes, ends=ends, turns=turns, field=field)


def _user(entry: Entry, field: str) -> str:
    if field and field not in entry.fields:
        raise DatasetError(f"{entry.id} has no field {field!r}, which tells whose memory it is.")
    return str(entry.fields[field]) if field else "everybody"


def moment_of(entry: Entry) -> datetime:
    """When a turn was said, by its date or else its title. Raises DatasetError."""
    for said in (*(entry.fields.get(name) for name in DATE_FIELDS), entry.title):
        if not said:
            continue
        try:
            moment: datetime = dates.parse(str(said), fuzzy=True, default=EPOCH)
        except (ValueError, OverflowError) as error:
            raise DatasetError(f"{entry.id}: “{said}” is no date ({error}).") from error
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise DatasetError(
        f"{entry.id} has no date: a turn needs one in {', '.join(DATE_FIELDS)} or its title."
    )
