"""What documents say of themselves, as filters, facets and sorting see it."""

from collections.abc import Iterable
from dataclasses import dataclass

from common.replicas import read_connection
from search.filters.derived import BROUGHT_TEXT, DATED_TEXT, ORIGIN


@dataclass(frozen=True, slots=True)
class Told:
    """`language` is an ISO code, `origin` a site or folder, each '' where not known. `dated` is ISO
    and as precise as the document's metadata say, or else the day on which it was brought."""

    title: str
    language: str
    origin: str
    dated: str

    @property
    def day(self) -> str:
        """`dated` as a whole day, the first that it can be: what dates are ordered by."""
        return self.dated + "0000-01-01"[len(self.dated) :]


_SQL = f"""
    SELECT document.id, coalesce(nullif(document.title, ''), nullif(document.source, ''),
           document.key), document.language, {ORIGIN},
           coalesce({DATED_TEXT}, {BROUGHT_TEXT})
    FROM documents_document AS document WHERE document.id = ANY(%s)
"""  # noqa: S608  # of constants


def told(document_ids: Iterable[int]) -> dict[int, Told]:
    """By id of the document; one that was deleted meanwhile is absent."""
    with read_connection().cursor() as cursor:
        cursor.execute(_SQL, [list(set(document_ids))])
        return {row[0]: Told(*row[1:]) for row in cursor.fetchall()}
