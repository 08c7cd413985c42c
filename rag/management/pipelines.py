"""What `manage.py pipelines` does, action by action."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accounts.models import Membership, Role
from common.errors import InvalidInput, NotFound
from common.showing import Shown, table_of, visible
from common.wording import counted
from documents.management.naming import workspace_named
from rag.context import RagContext
from rag.events import Cited, Done, Event, Failed, Step, Token, as_json
from rag.pipelines.definition import Definition
from rag.pipelines.faults import PipelineError
from rag.services import pipelines as services
from rag.services.pipelines import Kept

Options = Mapping[str, Any]

PROBLEMS = 3
#: A definition is a page or two.
MAX_FILE_BYTES = 10 * 1024 * 1024


def context_from(options: Options) -> RagContext:
    """On behalf of the named member of the named workspace, or of its first owner.

    Raises NotFound.
    """
    workspace = workspace_named(options["workspace"])
    members = Membership.objects.filter(workspace=workspace, user__is_active=True)
    name = options["user"]
    member = (
        members.filter(user__username=name) if name else members.filter(role=Role.OWNER)
    ).order_by("pk")
    found = member.select_related("user").first()
    if found is None:
        who = f"user “{name}”" if name else "owner"
        raise NotFound(f"The workspace “{workspace.slug}” has no {who}. Name a member by --user.")
    return RagContext(
        user=found.user, workspace=workspace, collections=tuple(options.get("collection") or ())
    )


def list_all(options: Options) -> Shown:
    """The workspace's own, then templates."""
    return _listed(services.list_pipelines(context=context_from(options)))


def templates(options: Options) -> Shown:
    """Those that come with the site."""
    return _listed(services.template_pipelines())


def show_one(options: Options) -> Shown:
    """One of them as JSON, to be changed and kept under another id."""
    kept = services.get_pipeline(context=context_from(options), id=options["id"])
    text = json.dumps(kept.definition, ensure_ascii=False, indent=2)
    return Shown(kept.definition, tuple(map(visible, text.splitlines())))


def validate(options: Options) -> Shown:
    """A definition in a file, checked against this site; exit code 3 where something is wrong."""
    try:
        checked = services.validate_pipeline(definition=_read(options["file"]))
    except PipelineError as error:
        faults = [{"path": fault.path, "message": fault.message} for fault in error.faults]
        lines = tuple(visible(str(fault)) for fault in error.faults)
        return Shown({"valid": False, "faults": faults}, lines, code=PROBLEMS)
    nodes, edges = counted(len(checked.nodes), "node"), counted(len(checked.edges), "edge")
    told = f"{nodes}, {edges}: nothing is wrong."
    return Shown({"valid": True, "faults": []}, (told,))


def run(options: Options) -> Shown:
    """Ask one of them, or a definition in a file; its words come as they do."""
    pipeline: str | Definition = options["id"]
    if options["id"].endswith(".json"):
        pipeline = services.validate_pipeline(definition=_read(Path(options["id"])))
    events = services.run_pipeline(
        pipeline,
        options["question"],
        context=context_from(options),
        model=options["model"],
        system_prompt=options["system_prompt"],
        language=options["language"],
    )
    told: list[Event] = []
    line_is_open = False
    for event in events:
        told.append(event)
        if isinstance(event, Step) and line_is_open and sys.stdout.isatty():
            sys.stdout.write("\n")  # both streams are on one terminal
            line_is_open = False
        if not options["json"]:
            _tell(event)
            line_is_open |= isinstance(event, Token)
    last = told[-1]
    code = 1 if isinstance(last, Failed) else 0
    return Shown([as_json(event) for event in told], tuple(_footer(told)), code=code)


def _tell(event: Event) -> None:
    """Steps go to standard error, so that the answer is all that there is on standard output."""
    if isinstance(event, Token):
        sys.stdout.write(_printable(event.text))
        sys.stdout.flush()
    elif isinstance(event, Step) and event.state != "started":
        round_ = f" ({event.iteration})" if event.iteration > 1 else ""
        sys.stderr.write(f"{event.id}{round_}: {event.state}, {event.elapsed_ms:,.0f} ms\n")


def _footer(events: list[Event]) -> list[str]:
    last = events[-1]
    if isinstance(last, Failed):
        return ["", f"{last.code}: {visible(last.detail)}"]
    cited = {event.passage.number: event.passage for event in events if isinstance(event, Cited)}
    lines = [
        f"[{number}] {visible(passage.heading)} ({passage.collection_slug}: "
        f"{visible(passage.document_key)})"
        for number, passage in sorted(cited.items())
    ]
    if isinstance(last, Done):
        lines.append(
            f"{last.elapsed_ms:,.0f} ms, {last.input_tokens:,} tokens in,"
            f" {last.output_tokens:,} out, trace {last.trace}"
        )
    return ["", "", *lines]


def _printable(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))


def _listed(pipelines: list[Kept]) -> Shown:
    rows = [
        (
            each.id,
            "template" if each.is_template else each.version,
            each.name,
            each.description,
        )
        for each in pipelines
    ]
    data = [
        {
            "id": each.id,
            "name": each.name,
            "description": each.description,
            "is_template": each.is_template,
            "version": each.version,
        }
        for each in pipelines
    ]
    return Shown(data, (), table_of(("id", "version", "name", ""), rows))


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(f"{path} has more than {MAX_FILE_BYTES:,} bytes: this is no definition.")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is no JSON: {error}. Correct it there.") from error
