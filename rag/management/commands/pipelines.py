"""`manage.py pipelines …`: list, show, validate and run pipelines and templates."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from accounts.services import DEFAULT_WORKSPACE, default_owner, get_workspace_by_slug
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand, terminal_safe
from common.errors import InvalidInput, NotFound
from common.text import pluralized
from rag.context import RagContext
from rag.events import (
    Citation,
    Done,
    Event,
    Failed,
    NodeProgress,
    ReasoningToken,
    Token,
    event_json,
    without_withdrawn,
)
from rag.models import Pipeline
from rag.pipelines.definition import Definition, PipelineError
from rag.services import pipelines as services

EXIT_FAULTS = 3
#: A definition is a page or two.
MAX_FILE_BYTES = 10 * 1024 * 1024


def command_context(options: Options) -> RagContext:
    """The context of the named member of the workspace, or of its first owner. Raises NotFound."""
    workspace = get_workspace_by_slug(options["workspace"])
    name = options["user"]
    member = workspace.memberships.filter(user__is_active=True, user__username=name)
    found = member.select_related("user").first() if name else None
    user = found.user if found else None if name else default_owner(workspace)
    if user is None:
        who = f"user “{name}”" if name else "owner"
        raise NotFound(f"The workspace “{workspace.slug}” has no {who}. Name a member by --user.")
    return RagContext(
        user=user, workspace=workspace, collections=tuple(options.get("collection") or ())
    )


def list_pipelines(options: Options) -> CommandOutput:
    """The workspace's own pipelines, then templates."""
    return _pipeline_table(services.list_pipelines(context=command_context(options)))


def list_templates(options: Options) -> CommandOutput:
    """The templates that come with the site."""
    return _pipeline_table(services.template_pipelines())


def show_pipeline(options: Options) -> CommandOutput:
    """Print one pipeline's definition as JSON."""
    record = services.get_pipeline(context=command_context(options), id=options["id"])
    text = json.dumps(record.definition, ensure_ascii=False, indent=2)
    return CommandOutput(record.definition, tuple(map(terminal_safe, text.splitlines())))


def validate_file(options: Options) -> CommandOutput:
    """Validate a definition in a file; exit code 3 if it has faults."""
    try:
        checked = services.validate_pipeline(definition=_read_json_file(options["file"]))
    except PipelineError as error:
        faults = [{"path": fault.path, "message": fault.message} for fault in error.faults]
        lines = tuple(terminal_safe(str(fault)) for fault in error.faults)
        return CommandOutput({"valid": False, "faults": faults}, lines, code=EXIT_FAULTS)
    nodes, edges = pluralized(len(checked.nodes), "node"), pluralized(len(checked.edges), "edge")
    summary = f"{nodes}, {edges}: no faults."
    return CommandOutput({"valid": True, "faults": []}, (summary,))


def run_pipeline(options: Options) -> CommandOutput:
    """Run a pipeline, or a definition in a file, and print its answer as it comes."""
    pipeline: str | Definition = options["id"]
    if options["id"].endswith(".json"):
        pipeline = services.validate_pipeline(definition=_read_json_file(Path(options["id"])))
    events = services.run_pipeline(
        pipeline,
        options["question"],
        context=command_context(options),
        model=options["model"],
        system_prompt=options["system_prompt"],
        language=options["language"],
    )
    collected: list[Event] = []
    line_is_open = False
    for event in events:
        collected.append(event)
        if isinstance(event, NodeProgress) and line_is_open and sys.stdout.isatty():
            sys.stdout.write("\n")  # both streams are on one terminal
            line_is_open = False
        if not options["json"]:
            # Steps go to standard error, so that standard output contains the answer only.
            if isinstance(event, Token):
                sys.stdout.write("\n".join(terminal_safe(line) for line in event.text.split("\n")))
                sys.stdout.flush()
            elif isinstance(event, ReasoningToken) and event.withdrawn_from is not None:
                sys.stdout.write("\n")
                sys.stderr.write("So far it was the model's reasoning. The answer:\n")
            elif isinstance(event, NodeProgress) and event.state != "started":
                round_ = f" ({event.iteration})" if event.iteration > 1 else ""
                sys.stderr.write(f"{event.id}{round_}: {event.state}, {event.elapsed_ms:,.0f} ms\n")
            line_is_open |= isinstance(event, Token)
    collected = without_withdrawn(collected)
    last, data = collected[-1], [event_json(event) for event in collected]
    if isinstance(last, Failed):
        return CommandOutput(data, ("", f"{last.code}: {terminal_safe(last.detail)}"), code=PARTIAL)
    cited = {each.passage.number: each.passage for each in collected if isinstance(each, Citation)}
    lines = [
        f"[{number}] {terminal_safe(passage.heading)} ({passage.collection_slug}: "
        f"{terminal_safe(passage.document_key)})"
        for number, passage in sorted(cited.items())
    ]
    if isinstance(last, Done):
        lines.append(
            f"{last.elapsed_ms:,.0f} ms, {last.input_tokens:,} tokens in,"
            f" {last.output_tokens:,} out, trace {last.trace}"
        )
    return CommandOutput(data, ("", "", *lines))


def _pipeline_table(pipelines: list[Pipeline]) -> CommandOutput:
    data = [
        {
            "id": each.slug,
            "name": each.name,
            "description": each.description,
            "is_template": each.is_template,
            "version": each.version,
        }
        for each in pipelines
    ]
    rows = [
        (each.slug, "template" if each.is_template else each.version, each.name, each.description)
        for each in pipelines
    ]
    return CommandOutput(data, (), ("id", "version", "name", ""), rows)


def _read_json_file(path: Path) -> Any:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(f"{path} has more than {MAX_FILE_BYTES:,} bytes: this is no definition.")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is no JSON: {error}. Correct it there.") from error


class Command(ServiceCommand):
    help = (
        "Pipelines of a workspace and templates: list, show, check and run them. Exit code: 0 done,"
        " 1 the run failed, 2 nothing was done, 3 the definition has faults."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        whose = ArgumentParser(add_help=False)
        whose.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        whose.add_argument("--user", default="", help="on whose behalf (default: its first owner)")
        add = self.add_actions(parser, whose)
        add("list", list_pipelines, "the workspace's own, then templates")
        add("templates", list_templates, "those that come with the site", is_shared=False)
        add("show", show_pipeline, "one as JSON").add_argument("id")
        checking = add(
            "validate",
            validate_file,
            "tell everything that is wrong with a definition",
            is_shared=False,
        )
        checking.add_argument("file", type=Path)
        running = add("run", run_pipeline, "ask one of them")
        running.add_argument("id", help="or a file that ends in .json")
        running.add_argument("question")
        running.add_argument("--model", default="", help="for nodes that name none")
        running.add_argument("--system-prompt", default="", help="what you demand of the answer")
        running.add_argument(
            "--language", default="", help="of the answer: German, de, or of code Python"
        )
        running.add_argument(
            "--collection", action="append", metavar="SLUG", help="look nowhere else; repeatable"
        )
