"""Prometheus metrics of this process. Labels have few values: names from the code, never a URL,
text or an id.
"""

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

# No `_created` series, which nobody uses.
disable_created_metrics()  # type: ignore[no-untyped-call]

_PAGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_STAGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ANSWERS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

REQUEST_SECONDS = Histogram(
    "ragsite_request_seconds",
    "From a request to the beginning of its answer.",
    ["method", "route", "status"],
    buckets=_PAGES,
)
SEARCH_STAGE_SECONDS = Histogram(
    "ragsite_search_stage_seconds",
    "Stages of a search; total is all of it.",
    ["stage"],
    buckets=_STAGES,
)
ANSWER_SECONDS = Histogram(
    "ragsite_answer_seconds",
    "From a question to the last word of its answer, by how it ended.",
    ["finish"],
    buckets=_ANSWERS,
)
FIRST_TOKEN_SECONDS = Histogram(
    "ragsite_answer_first_token_seconds",
    "From a question to the first word of its answer.",
    buckets=_ANSWERS,
)
POOL_IN_USE = Gauge(
    "ragsite_database_pool_in_use",
    "Database connections of the web server that threads have taken.",
    multiprocess_mode="livesum",
)
POOL_SIZE = Gauge(
    "ragsite_database_pool_size",
    "Database connections that they may take.",
    multiprocess_mode="livesum",
)
POOL_WAIT_SECONDS = Histogram(
    "ragsite_database_pool_wait_seconds",
    "How long a thread waited for one.",
    buckets=_STAGES,
)
POOL_EXHAUSTED = Counter("ragsite_database_pool_exhausted", "Threads that waited for one in vain.")
