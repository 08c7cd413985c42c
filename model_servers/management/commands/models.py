"""`manage.py models`: models of servers, connected while the site runs."""

import os
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from pydantic import SecretStr

from accounts.services import get_workspace_by_slug
from common.console import CommandOutput, ServiceCommand
from common.console import Options as Given
from common.errors import InvalidInput, NotFound
from common.options.commandline import add_options
from common.text import pluralized
from inference.remote.probing import EmbedderTrial, RerankerTrial
from model_servers import embedding, services
from model_servers.discovery import find_models
from model_servers.models import ModelConnection
from model_servers.options import PRESETS, ConnectionOptions

KEY_VARIABLE = "MODEL_KEY"
_TAKEN = (
    "purpose",
    "model",
    "name",
    "context_tokens",
    "dimensions",
    "input_price",
    "output_price",
)


class Command(ServiceCommand):
    stays_in_main = True
    help = (
        "Language models, embedders and rerankers of servers: Ollama, any that speaks OpenAI's"
        " protocol, Anthropic. All processes use a change within seconds, without a restart. Exit"
        " code: 0 done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        add("list", list_models, "the connected models, and those that the environment sets")
        add("found", list_found, "models of servers on this machine that are not connected")
        adding = add("add", add_model, "connect a model; it is tried first")
        adding.add_argument("preset", choices=PRESETS, help="the kind of server")
        adding.add_argument("model", help="as the server calls it")
        add_options(adding, ConnectionOptions, skip={"kind", "model", "key"})
        adding.add_argument(
            "--key",
            type=SecretStr,
            help=f"of a server that wants one; also taken from {KEY_VARIABLE}, which other users of"
            " this machine do not see",
        )
        adding.add_argument("--workspaces", nargs="+", metavar="SLUG", help="only these may use it")
        adding.add_argument(
            "--default",
            action="store_true",
            help="it answers on the site, reranks, or embeds new collections",
        )
        adding.add_argument("--untried", action="store_true", help="save it without a trial")
        add("encrypt", encrypt_keys, "encrypt all keys by the newest key")
        for name, act, meaning in (
            ("try", try_model, "try it, and tell how fast it is"),
            (
                "default",
                set_default,
                "have it answer on the site, rerank, or embed new collections",
            ),
            ("remove", remove_model, "forget it with its key"),
        ):
            made = add(name, act, meaning)
            made.add_argument("name", help="by which it is listed")


def list_models(options: Given) -> CommandOutput:
    rows = [{**row, "kind": "environment"} for row in services.environment_models()]
    rows += [_report(row) for row in ModelConnection.objects.select_related("workspace")]
    headings = ("name", "purpose", "model", "kind", "address", "default")
    shown = headings[:-1]
    cells: list[Sequence[Any]] = [
        [*(row[name] for name in shown), "yes" if row["is_default"] else ""] for row in rows
    ]
    lines = (
        [] if rows else ["There is none: answers quote the documents. `models add` connects one."]
    )
    return CommandOutput(rows, lines, headings=headings, rows=cells)


def list_found(options: Given) -> CommandOutput:
    found = find_models(list(ModelConnection.objects.all()))
    rows = [[each.model, each.label, each.address] for each in found]
    data = [{"model": each.model, "preset": each.preset, "address": each.address} for each in found]
    lines = [] if rows else ["No model server answers on this machine, or all are connected."]
    return CommandOutput(data, lines, headings=("model", "server", "address"), rows=rows)


def add_model(options: Given) -> CommandOutput:
    preset = PRESETS[options["preset"]]
    key = options["key"] or SecretStr(os.environ.get(KEY_VARIABLE, ""))
    address = options["address"] or preset.address
    if not address:
        raise InvalidInput("Say where the server is: --address.")
    given = {
        "kind": preset.kind,
        "address": address,
        **{name: options[name] for name in _TAKEN if options[name] is not None},
        **({"key": key} if key.get_secret_value() else {}),
    }
    chosen = ConnectionOptions(**given)
    lines = []
    if not options["untried"]:
        chosen, trial = services.tried_options(chosen)
        lines = _trial_lines(trial)
    slugs = options["workspaces"]
    row = services.connect_model(
        options=chosen,
        workspaces=[get_workspace_by_slug(slug).pk for slug in slugs] if slugs else None,
        is_default=options["default"],
    )
    return CommandOutput(_report(row), [f"{row} is connected.", *lines])


def try_model(options: Given) -> CommandOutput:
    trial = services.try_connection(_connection(options))
    data = {name: getattr(trial, name) for name in trial.__slots__}
    return CommandOutput(data, _trial_lines(trial))


def _trial_lines(trial: services.AnyTrial) -> list[str]:
    if isinstance(trial, EmbedderTrial):
        return [f"{trial.dimensions:,} dimensions, {trial.text_ms:,} ms a text."]
    if isinstance(trial, RerankerTrial):
        ordered = [f"{at}. {text}" for at, (text, _) in enumerate(trial.passages, 1)]
        return [f"“{trial.question}” in {trial.milliseconds:,} ms:", *ordered]
    rate = f", {trial.tokens_per_second:g} tokens a second" if trial.tokens_per_second else ""
    context = f", reads {trial.context_tokens:,} tokens" if trial.context_tokens else ""
    return [f"First words after {trial.first_words_ms:,} ms{rate}{context}.", trial.answer]


def set_default(options: Given) -> CommandOutput:
    row = services.set_default(connection=_connection(options))
    warnings = (
        ("The environment names another default, which goes before it.",)
        if services.is_overruled(row)
        else ()
    )
    lines = {
        "chat": [f"{row} answers on the site."],
        "reranker": [f"{row} reranks on the site."],
        "embedder": [
            f"{row} embeds new collections. `manage.py reembed --to SPACE` moves what is there:",
            *(f"  {space.name}" for space in embedding.spaces_of(row)),
        ],
    }
    return CommandOutput(_report(row), lines[row.purpose], warnings=warnings)


def remove_model(options: Given) -> CommandOutput:
    row = _connection(options)
    report = _report(row)
    services.remove_connection(connection=row)
    lines = [f"{row} is removed."]
    if report["is_default"] and row.purpose == "chat":
        lines.append("Answers quote the documents until another model is the default.")
    return CommandOutput(report, lines)


def encrypt_keys(options: Given) -> CommandOutput:
    count = services.encrypt_anew()
    return CommandOutput({"keys": count}, [f"{pluralized(count, 'key')} encrypted anew."])


def _connection(options: Given) -> ModelConnection:
    rows = ModelConnection.objects.filter(name=options["name"]).select_related("workspace")
    found = min(rows, key=lambda row: row.workspace_id is not None, default=None)
    if found is None:
        names = ", ".join(ModelConnection.objects.values_list("name", flat=True)[:20])
        raise NotFound(
            f"There is no connected model “{options['name']}”. There are: {names or 'none yet'}."
        )
    return found


def _report(row: ModelConnection) -> dict[str, Any]:
    return {
        "name": row.name,
        "purpose": row.purpose,
        "alias": row.alias,
        "model": row.model,
        "kind": row.kind,
        "address": row.address,
        "workspace": row.workspace.slug if row.workspace else None,
        "has_key": row.has_key,
        "is_default": embedding.is_default(row),
    }
