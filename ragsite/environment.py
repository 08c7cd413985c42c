"""Environment variables as settings, with defaults from `.env`."""

import os
import re
from collections.abc import Mapping, MutableMapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

#: Path of another file; set and empty: no file is read.
FILE_VARIABLE = "RAGSITE_ENV_FILE"
_DEFAULT_FILE = Path(__file__).resolve().parent.parent / ".env"
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
#: Read by other code than the settings.
_OTHER_NAMES = frozenset(
    {
        FILE_VARIABLE,
        *("RAGSITE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PORT", "BIND"),
        *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME"),
        *("POSTGRES_PASSWORD", "DB_PORT", "BROKER_PORT"),  # Docker Compose
    }
)
#: Unknown names in the file may belong to other programs; one this similar to ours is a typing
#: error.
_TYPO_SIMILARITY = 0.85
#: Backends that are told where the broker is.
_ASKING_A_WORKER = (
    "inference.backends.worker.WorkerEmbedder",
    "inference.backends.worker.WorkerReranker",
    "inference.backends.worker.WorkerTokenEncoder",
)
_FALSE = ("false", "off", "n", "no", "0", "")
#: What becomes of the people for whom another server vouches, by the end of a variable's name.
_NEW_PEOPLE: dict[str, Any] = {
    "NAME": "",
    "USERNAME": "",
    "EMAIL": "",
    "GROUPS": "",
    "CREATE": True,
    "WORKSPACE": "default",
    "ROLE": "viewer",
    "LINK_BY_EMAIL": False,
    "DOMAINS": [],
    "ALLOWED_GROUPS": [],
    "SESSION_HOURS": 12.0,
}
#: The further variables of such a server, by its kind; the first turns it on.
SIGN_IN: dict[str, dict[str, Any]] = {
    "OIDC": {"ISSUER": "", "CLIENT_ID": "", "CLIENT_SECRET": "", "SCOPES": [], **_NEW_PEOPLE},
    "SAML": {"METADATA": "", **_NEW_PEOPLE},
    "PROXY": {"HEADER": "", "ADDRESSES": [], **_NEW_PEOPLE},
}

_SHARD_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
#: Names that are no shards, by variable.
_OTHER_ALIASES = {
    "DATABASE_SHARD_URLS": ("main", "default", "catalog"),
    "DATABASE_REPLICATION_URLS": (),
}


def env_file() -> Path | None:
    """The settings file that is read, if any."""
    named = os.environ.get(FILE_VARIABLE)
    if named is None:
        return _DEFAULT_FILE if _DEFAULT_FILE.exists() else None
    return Path(named) if named else None


def load_env_file(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the file's variables that are not set yet. Raises ImproperlyConfigured, which names the
    line and shows no value.
    """
    if path := env_file():
        for name, (_, value) in read_env_file(path).items():
            environment.setdefault(name, value)


def read_env_file(path: Path) -> dict[str, tuple[int, str]]:
    """Line number and value by name. The form is that of Docker Compose, on one line a variable:
    `NAME=value`, quotes around the value where it has ` #` or spaces at its ends, `#` before a
    comment. `$` means nothing here."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ImproperlyConfigured(
            f"{path} cannot be read: {reason}. Correct it, or set {FILE_VARIABLE} to another file."
        ) from error
    values = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        if not (parts := _LINE.fullmatch(line)):
            raise ImproperlyConfigured(
                f"{path}, line {number} is not NAME=value. Correct it, or begin it with #."
            )
        name, value = parts.groups()
        if value.startswith(("'", '"')):
            if not (quoted := _QUOTED.fullmatch(value)):
                raise ImproperlyConfigured(
                    f"{path}, line {number}: the value of {name} begins with a quote and does not"
                    " end with it. Write the whole value on one line, and close the quote."
                )
            single, double = quoted.groups()
            value = single if double is None else re.sub(r"\\(.)", r"\1", double)
        else:
            value = re.split(r"(?:^|\s+)#", value, maxsplit=1)[0]
        values[name] = number, value
    return values


def env_file_to_write() -> Path | None:
    """The settings file that is read, or would be if it existed; None where none is."""
    named = os.environ.get(FILE_VARIABLE)
    return env_file() if named is not None else _DEFAULT_FILE


def write_env_file(path: Path, variables: Mapping[str, str | None]) -> list[str]:
    """Replace or add these variables in the file (None removes) and keep all other lines. Returns
    the names whose value the environment overrides.
    """
    before = read_env_file(path) if path.exists() else {}
    overruled = [
        name
        for name in variables
        if name in os.environ and (name not in before or before[name][1] != os.environ[name])
    ]
    replaced = {number for name, (number, _) in before.items() if name in variables}
    lines = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
    kept = [line for number, line in enumerate(lines, start=1) if number not in replaced]
    for name, value in variables.items():
        if value is None:
            continue
        if " #" in value or value != value.strip() or value.startswith(("'", '"', "#")):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            kept.append(f'{name}="{escaped}"')
        else:
            kept.append(f"{name}={value}")
    path.touch(mode=0o600)  # it may hold passwords
    path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return overruled


def shard_urls(
    entries: list[str], *, variable: str = "DATABASE_SHARD_URLS"
) -> list[tuple[str, str]]:
    """Names and URLs of `NAME=URL` entries. Raises ImproperlyConfigured."""
    found: dict[str, str] = {}
    for entry in filter(None, map(str.strip, entries)):
        name, _, url = entry.partition("=")
        is_taken = name in {*found, *_OTHER_ALIASES[variable]} or name.startswith("replica_")
        if not _SHARD_NAME.fullmatch(name) or is_taken or "://" not in url:
            raise ImproperlyConfigured(
                f"{variable}: “{name}” must be a name of its own with a URL, such as"
                " east=postgresql://USER:PASSWORD@HOST/NAME; with lower-case letters, digits and"
                " underscores, and not main, default, catalog or replica_1."
            )
        found[name] = url
    return list(found.items())


class Environment(environ.Env):
    """Typed variables, and a record of which names were read."""

    def __init__(self) -> None:
        super().__init__()
        self._names: set[str] = set()

    def get_value(self, var: str, cast: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Raises ImproperlyConfigured where the value is no number or no boolean."""
        self._names.add(var)
        given = os.environ.get(var, "")
        if cast is bool and given.strip().lower() not in (*self.BOOLEAN_TRUE_STRINGS, *_FALSE):
            raise ImproperlyConfigured(f"{var} is “{given}”. Write true or false.")
        try:
            return super().get_value(var, cast, *args, **kwargs)
        except ValueError as error:
            if cast not in (int, float):
                raise
            kind = "a whole number" if cast is int else "a number"
            raise ImproperlyConfigured(f"{var} is “{given}”. Write {kind}.") from error

    def json_object(self, name: str, *, example: str = '{"threads": 2}') -> dict[str, Any]:
        """A JSON object, such as the keyword arguments of a model backend."""
        try:
            found = self.json(name) if self.str(name, default="") else {}
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{name} is no JSON ({error}). Write {{}} for none."
            ) from error
        if not isinstance(found, dict):
            raise ImproperlyConfigured(f"{name} must be a JSON object, such as {example}.")
        return found

    def models(self, kind: str, *, default: str, broker: str) -> dict[str, Any]:
        """Models of one kind by alias: the default from KIND_BACKEND and KIND_OPTIONS, and those of
        KINDS. `broker` is the address of those that ask a worker. EMBEDDER_LANGUAGES and their like
        are the languages that the default one was made for.
        """
        entry: dict[str, Any] = {
            "BACKEND": self.str(f"{kind}_BACKEND", default=default),
            "OPTIONS": self.json_object(f"{kind}_OPTIONS"),
        }
        if kind != "CHAT" and (languages := self.list(f"{kind}_LANGUAGES", default=[])):
            entry["LANGUAGES"] = languages
        example = '{"small": {"BACKEND": "dotted.path", "OPTIONS": {}}}'
        others = self.json_object(f"{kind}S", example=example)
        if "default" in others:
            raise ImproperlyConfigured(
                f"{kind}S cannot hold “default”: set {kind}_BACKEND and {kind}_OPTIONS."
            )
        models = {"default": entry, **others}
        for alias, entry in models.items():
            given = entry.get("OPTIONS", {}) if isinstance(entry, dict) else None
            # What is malformed is left as it is, for the checks to name.
            if isinstance(given, dict) and entry.get("BACKEND") in _ASKING_A_WORKER:
                models[alias] = {**entry, "OPTIONS": {"url": broker, "alias": alias, **given}}
        return models

    def sign_in(self, kind: str) -> dict[str, dict[str, Any]]:
        """Servers of one kind that vouch for people, by the name in their addresses: the one of
        RAGSITE_KIND_…, which is called as its kind, and those of RAGSITE_KIND_PROVIDERS.
        """
        defaults = SIGN_IN[kind]
        own = {
            name.lower(): self._typed(f"RAGSITE_{kind}_{name}", default)
            for name, default in defaults.items()
        }
        found = {kind.lower(): own} if own[next(iter(defaults)).lower()] else {}
        more = {}
        if kind != "PROXY":
            example = '{"firm": {"issuer": "https://login.firm.example"}}'
            more = self.json_object(f"RAGSITE_{kind}_PROVIDERS", example=example)
        standard = {name.lower(): default for name, default in defaults.items()}
        for slug, options in more.items():
            unknown = sorted(set(options) - set(standard)) if isinstance(options, dict) else [slug]
            if unknown:
                raise ImproperlyConfigured(
                    f"RAGSITE_{kind}_PROVIDERS: “{unknown[0]}” is no option of a provider. There"
                    f" are: {', '.join(standard)}."
                )
            found[slug] = {**standard, **options}
        return found

    def _typed(self, name: str, default: Any) -> Any:
        """The variable, as what its default is."""
        if isinstance(default, list):
            return self.list(name, default=default)
        if isinstance(default, bool):
            return self.bool(name, default=default)
        return (self.float if isinstance(default, float) else self.str)(name, default=default)

    def check_names(self) -> None:
        """Raise ImproperlyConfigured where the file sets an unknown variable with a name similar to
        a known one. Call it after all settings were read.
        """
        path = env_file()
        known = self._names | _OTHER_NAMES
        for name, (number, _) in read_env_file(path).items() if path else ():
            similar = get_close_matches(name, known, n=1, cutoff=_TYPO_SIMILARITY)
            if name in known or not (similar or name.startswith("RAGSITE_")):
                continue
            hint = f"Did you mean {similar[0]}?" if similar else "See docs/reference/settings.md."
            raise ImproperlyConfigured(f"{path}, line {number}: {name} is no setting. {hint}")
