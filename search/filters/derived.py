"""Fields that are worked out of others, as SQL on `documents_document AS document`."""

#: Where metadata tell of what day a thing is, the surest first: of pages, books, files, records.
DATE_KEYS = (
    "date",
    "published",
    "published_at",
    "issued",
    "year",
    "created",
    "created_at",
    "modified_at",
)

#: A year from 1000 on, with month and day where they follow: “2024”, “2024-05”, “2024-05-31T12:00”,
#: and the year alone of “31 May 2024”.
_DAY = r"\m([12]\d{3}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?)(?!\d)"  # PostgreSQL's \m

#: When it was brought, as a day.
BROUGHT_TEXT = "to_char(document.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
#: Of what day a document is by its own metadata, as ISO text, as precise as they say; or NULL.
DATED_TEXT = (
    "coalesce("
    + ", ".join(f"substring(document.metadata->>'{key}' from '{_DAY}')" for key in DATE_KEYS)
    + ")"
)
_WHOLE = f"({DATED_TEXT} || substr('0000-01-01', length({DATED_TEXT}) + 1))"
#: The same as a moment: a bare year or month is its first day, and what metadata do not say is when
#: the document was brought. By `make_date`, because a cast would fail at a 31st of February.
DATED = (
    f"coalesce((make_date(substr({_WHOLE}, 1, 4)::int, substr({_WHOLE}, 6, 2)::int, 1)"
    f" + substr({_WHOLE}, 9, 2)::int - 1)::timestamp AT TIME ZONE 'UTC', document.created_at)"
)

#: Where a document is from: the site of its address, else the folder of its source, else ''.
ORIGIN = (
    r"coalesce(lower(substring(document.url"
    r" from '(?i)^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(?:www\.)?([^/?#:]+)')),"
    r" substring(document.source from '^(.*)/[^/]*$'), '')"
)
