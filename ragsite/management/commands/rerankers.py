"""`manage.py rerankers list|set|unset`: the reranker of the site."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from accounts.services import DEFAULT_WORKSPACE
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand
from common.errors import Conflict, NotFound
from common.text import pluralized
from inference.interfaces import BackendUnavailable, InferenceError
from inference.local.model_folder import locate_model
from inference.model_registry import rerankers
from ragsite.environment import env_file_to_write, write_env_file
from search.evaluation.datasets import golden_set, judged_collection
from search.evaluation.evaluate import evaluate_collection

BACKENDS = "inference.backends"
NO_RERANKER = f"{BACKENDS}.rerank_basic.NoReranker"
#: Backend by the architecture named in a folder's config.json.
ARCHITECTURES = {
    "ForSequenceClassification": f"{BACKENDS}.rerank_cross_encoder.CrossEncoderReranker",
    "ForCausalLM": f"{BACKENDS}.rerank_qwen3.Qwen3Reranker",
}
#: Questions with answers, to test that a model reranks at all.
KNOWN = {
    "Who invented the telephone?": "Alexander Graham Bell patented the telephone in 1876.",
    "Which fruit is rich in potassium?": "Bananas are a fruit rich in potassium.",
    "Where does the Danube flow?": "The Danube flows into the Black Sea.",
}
#: At least as many passages as a search reranks, of usual length.
PASSAGES, WORDS = 20, 150
MEASURES = ("ndcg@10", "hit@1", "hit@3")


class Command(ServiceCommand):
    requires_system_checks = []  # one that cannot load is to be replaced by this

    help = (
        "The model that reads the best passages of a search again. `set` fetches it, tries it,"
        " writes it into the file .env for the site and its workers, and says what it gains on"
        " what was judged. Exit code: 0 done, 1 `list` found one that does not work, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        add("list", list_rerankers, "what is set, and whether it works")
        choose = add("set", self._set, "use a model from now on")
        choose.add_argument(
            "model",
            metavar="MODEL|URL",
            help="a folder, a name on the Hugging Face hub, or a server that has /v1/rerank",
        )
        choose.add_argument("--model", dest="served", default="", help="what the server calls it")
        choose.add_argument(
            "--options", type=json.loads, default={}, metavar="JSON", help="of the backend"
        )
        choose.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="of the judgements")
        choose.add_argument("--collection", default="", help="whose judgements to measure on")
        add("unset", self._unset, "use the bundled one again, or none where there is none")
        add("off", self._off, "search without one")

    def _unset(self, options: Options) -> None:
        self._write({"RERANKER_BACKEND": None, "RERANKER_OPTIONS": None})

    def _off(self, options: Options) -> None:
        self._write({"RERANKER_BACKEND": NO_RERANKER, "RERANKER_OPTIONS": None})

    def _set(self, options: Options) -> None:
        entry = self._entry(options)
        # Make it the default of this process, loaded locally.
        settings.INFERENCE = {
            **settings.INFERENCE,
            "reranker": {**settings.INFERENCE["reranker"], "default": entry},
        }
        settings.SHARED_MODELS = False
        setting_changed.send(
            sender=Command, setting="INFERENCE", value=settings.INFERENCE, enter=True
        )
        for place, question in enumerate(KNOWN):
            scores = rerankers["default"].score(question, [*KNOWN.values()], stored=[1.0] * 3)
            if scores[place] <= max(scores[:place] + scores[place + 1 :]):
                raise BackendUnavailable(
                    f"{options['model']} does not put “{KNOWN[question]}” first for “{question}”:"
                    " it is no reranker, or not one for English. Nothing was changed."
                )
        milliseconds = _milliseconds("default")
        self.stdout.write(
            f"{options['model']} works: {PASSAGES} passages in {milliseconds:.0f} ms."
        )
        self._measure(options)
        self._write(
            {
                "RERANKER_BACKEND": entry["BACKEND"],
                "RERANKER_OPTIONS": json.dumps(entry["OPTIONS"]),
            }
        )

    def _entry(self, options: Options) -> dict[str, Any]:
        """The entry of INFERENCE["reranker"] for the named model, which is downloaded if needed."""
        model, more = options["model"], options["options"]
        if model.startswith(("http://", "https://")):
            if not options["served"]:
                raise BackendUnavailable("Say with --model what the server calls the model.")
            where = {"model": options["served"], "base_url": model}
            return {"BACKEND": f"{BACKENDS}.rerank_http.HttpReranker", "OPTIONS": where | more}
        folder, _ = locate_model(model, allow_download=True)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture = (config.get("architectures") or [""])[0]
        for ending, backend in ARCHITECTURES.items():
            if architecture.endswith(ending):
                name = str(folder.resolve()) if Path(model).is_dir() else model
                return {"BACKEND": backend, "OPTIONS": {"model": name} | more}
        raise BackendUnavailable(
            f"{model} is a {architecture or 'model of no known kind'}, which is no reranker: name a"
            " cross-encoder or a Qwen3-Reranker."
        )

    def _measure(self, options: Options) -> None:
        """Print what reranking changes on the judgements, if there are any."""
        try:
            collection = judged_collection(
                workspace=options["workspace"], slug=options["collection"]
            )
            dataset = golden_set(collection)
        except (Conflict, NotFound) as error:
            self.stdout.write(f"What it gains is not measured: {error}")
            return
        report = evaluate_collection(collection, dataset, modes=["hybrid"], rerank=True)
        before, after = report["modes"]["hybrid"], report["modes"]["hybrid+rerank"]
        self.stdout.write(f"On {pluralized(len(dataset.queries), 'question')} of {dataset.name}:")
        for name in (*MEASURES, "p50_ms"):
            self.stdout.write(
                f"  {name:8} {before[name]:8g} -> {after[name]:8g}  {after[name] - before[name]:+g}"
            )

    def _write(self, variables: Mapping[str, str | None]) -> None:
        path = env_file_to_write()
        if path is None:
            raise Conflict(
                "No file of settings is read here. Set these for the site and its workers:\n"
                + "\n".join(f"{name}={value or ''}" for name, value in variables.items())
            )
        overruled = write_env_file(path, variables)
        for name in overruled:
            self.stderr.write(
                f"{name} is set in the environment, which overrules {path}. Unset it."
            )
        self.stdout.write(
            f"Written to {path}. Restart the site and its workers; a worker on another machine"
            " needs the same lines."
        )


def list_rerankers(options: Options) -> CommandOutput:
    """Each reranker with its state, which is tried."""
    rows = []
    code = 0
    for alias in rerankers:
        if connected := rerankers.find_connected(alias):
            row = {"alias": alias, "backend": "connected", "model": connected.model_name}
        else:
            entry = rerankers.configured()[alias]
            if entry["BACKEND"] == NO_RERANKER:
                continue
            row = {"alias": alias, "backend": entry["BACKEND"].rpartition(".")[2]}
            row["model"] = entry.get("OPTIONS", {}).get("model", "")
        try:
            row["state"] = f"works, {_milliseconds(alias):.0f} ms for {PASSAGES} passages"
        except InferenceError as error:
            row["state"] = str(error)
            code = PARTIAL
        rows.append(row)
    lines = ["  ".join(part for part in row.values() if part) for row in rows]
    return CommandOutput(
        rows, lines or ["There is none. `manage.py rerankers set MODEL` sets one."], code=code
    )


def _milliseconds(alias: str) -> float:
    """Duration of reranking typical passages once the model is warm."""
    words = " ".join([*KNOWN.values()] * WORDS).split()[:WORDS]
    passages = [" ".join(words)] * PASSAGES
    for _ in range(2):
        started = perf_counter()
        rerankers[alias].score(next(iter(KNOWN)), passages, stored=[1.0] * PASSAGES)
    return (perf_counter() - started) * 1000
