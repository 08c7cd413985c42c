"""`manage.py sources`: places outside that keep collections up to date."""

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import Count, Q
from django.urls import reverse

from accounts.services import DEFAULT_WORKSPACE
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand
from common.errors import InvalidInput, NotFound
from documents.management.cli import ProgressBar, get_or_create_collection
from documents.models import Document
from sources import runs, services
from sources.connectors import connector_class, kinds
from sources.connectors.base import SourceError
from sources.models import DataSource, DataSourceRun
from sources.notices import describe_problem

SHOWN_FAILURES = 200
Status = Document.Status


def option(text: str) -> tuple[str, str]:
    """Type of an argument NAME=VALUE: the name and the value."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError("write NAME=VALUE, such as path=/srv/handbook")
    return name, value


class Command(ServiceCommand):
    help = (
        "Sources: folders, repositories, web sites and others that keep a collection up to date by"
        " themselves. Exit code: 0 done, 1 some files failed, 2 not done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        add("kinds", list_kinds, "the kinds there are, with their options")
        add("list", list_sources, "all sources, with their last run")
        adding = add("add", add_source, "a source; it is tried before it is kept")
        adding.add_argument("kind", help=f"one of {', '.join(kinds())}")
        adding.add_argument("name")
        adding.add_argument("--collection", required=True, help="slug; made when missing")
        adding.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        adding.add_argument(
            "--option",
            action="append",
            type=option,
            default=[],
            metavar="NAME=VALUE",
            help="of its kind; may be given several times",
        )
        adding.add_argument("--schedule", default="", help="minutes, or five cron words")
        adding.add_argument(
            "--keep-missing", action="store_true", help="keep documents whose file is gone"
        )
        add("encrypt", encrypt_secrets, "encrypt all secrets by the newest key")
        for name, act, meaning in (
            ("show", show_source, "its state, its newest runs, and what could not be fetched"),
            ("change", change_source, "set what is given; secrets that are not given stay"),
            ("try", try_source, "former name of run --dry-run"),
            ("run", self._run, "run it now, in this process"),
            ("cancel", cancel_source, "end the run that is going on"),
            ("runs", list_runs, "its runs, newest first"),
            ("failures", list_failures, "files that could not be fetched, with the reasons"),
            ("retry", retry_source, "fetch again what was given up, at the next run"),
            ("webhook", make_webhook, "make the secret of calls that start a run"),
            ("remove", remove_source, "remove it; its documents stay"),
        ):
            made = add(name, act, meaning)
            made.add_argument("name")
            made.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
            if name == "change":
                made.add_argument("--name", dest="new_name", help="a new name")
                made.add_argument(
                    "--option", action="append", type=option, default=[], metavar="NAME=VALUE"
                )
                made.add_argument("--schedule", help="minutes, or five cron words; empty: by hand")
            if name in ("runs", "failures"):
                made.add_argument("--limit", type=int, default=SHOWN_FAILURES)
            if name == "webhook":
                made.add_argument("--off", action="store_true", help="take calls no more")
            if name == "run":
                made.add_argument(
                    "--dry-run", action="store_true", help="only report what it would do"
                )
                made.add_argument(
                    "--allow-deletions",
                    action="store_true",
                    help="delete however many files are gone",
                )
            if name == "remove":
                made.add_argument(
                    "--with-documents", action="store_true", help="delete its documents, too"
                )

    def _run(self, options: Options) -> CommandOutput:
        source = _source(options)
        if options["dry_run"]:
            return report_changes(source)
        run: DataSourceRun | None = services.start_run(
            source=source, allow_deletions=options["allow_deletions"], enqueue=False
        )
        with ProgressBar("files", quiet=options["json"]) as bar:

            def show(run: DataSourceRun) -> None:
                bar.show(run.fetched + run.failed, run.new + run.changed, f"{run.listed:,} listed")

            while run is not None and not run.is_finished:
                run = runs.work_on(source.pk, seconds=None, on_progress=show)
        if run is None:
            raise NotFound("Somebody else has it just now. `manage.py sources show` tells.")
        good = {DataSourceRun.State.SUCCEEDED, DataSourceRun.State.PARTIAL}
        code = (
            0 if run.state == DataSourceRun.State.SUCCEEDED else PARTIAL if run.state in good else 2
        )
        indexing, lines = _indexing(source)
        return CommandOutput({**_run_report(run), **indexing}, [_run_line(run), *lines], code=code)


def list_kinds(options: Options) -> CommandOutput:
    rows = []
    for kind in kinds():
        made = connector_class(kind)
        for name, field in made.Options.model_fields.items():
            needed = "needed" if field.is_required() else str(field.default or "")
            rows.append([kind, name, needed, field.description or field.title or ""])
    data = [dict(zip(("kind", "option", "default", "meaning"), row, strict=True)) for row in rows]
    return CommandOutput(data, headings=("kind", "option", "default", "meaning"), rows=rows)


def list_sources(options: Options) -> CommandOutput:
    sources = list(DataSource.objects.select_related("collection"))
    rows = [
        [
            each.name,
            each.connector,
            each.collection.slug,
            each.get_problem_display() or each.get_state_display(),
            each.due_at,
            last.get_state_display() if (last := each.runs.first()) else "never run",
        ]
        for each in sources
    ]
    return CommandOutput(
        list(map(_source_report, sources)),
        [] if rows else ["There is no source yet. `manage.py sources add` makes one."],
        headings=("name", "kind", "collection", "state", "next run", "last run"),
        rows=rows,
    )


def add_source(options: Options) -> CommandOutput:
    given = dict(options["option"])
    try:
        found = services.first_items(options["kind"], given)
    except SourceError as error:
        raise NotFound(str(error)) from error
    source = services.create_source(
        collection=get_or_create_collection(options),
        name=options["name"],
        connector=options["kind"],
        options=given,
        schedule=options["schedule"],
        delete_missing=not options["keep_missing"],
    )
    shown = ", ".join(item.name for item in found) or "nothing yet"
    return CommandOutput(
        _source_report(source),
        [f"{source} is kept. It holds, among others: {shown}.", _next_line(source)],
    )


def _next_line(source: DataSource) -> str:
    if source.schedule:
        return "The workers begin with it within a minute."
    return f"It has no schedule: `manage.py sources run “{source}”` reads it."


def show_source(options: Options) -> CommandOutput:
    source = _source(options)
    counts = source.items.aggregate(items=Count("pk"), failed=Count("pk", filter=Q(failures__gt=0)))
    failed = list(source.items.filter(failures__gt=0).order_by("name")[:SHOWN_FAILURES])
    runs = list(source.runs.all()[:10])
    indexing, indexing_lines = _indexing(source)
    lines = [
        f"{source}: {source.connector} into {source.collection.slug}, {counts['items']:,} items,"
        f" {source.get_state_display()}"
        + (f", next run {source.due_at:%Y-%m-%d %H:%M}" if source.due_at else ""),
        *([text] if (text := describe_problem(source)) else []),
        *([source.error] if source.error else []),
        *map(_run_line, runs),
        *(f"  failed: {row.name}: {row.error}" for row in failed),
        *indexing_lines,
    ]
    report = {
        **_source_report(source),
        **counts,
        **indexing,
        "runs": list(map(_run_report, runs)),
        "failures": [{"name": row.name, "reason": row.error} for row in failed],
    }
    return CommandOutput(report, lines)


def _indexing(source: DataSource) -> tuple[dict[str, Any], list[str]]:
    """What the workers still have to index of the fetched files, and what they could not read: as
    data, and as lines."""
    documents = Document.objects.filter(
        collection_id=source.collection_id, key__startswith=source.key_prefix
    )
    waiting = documents.filter(status__in=(Status.QUEUED, Status.PROCESSING)).count()
    failed = documents.filter(status=Status.FAILED).order_by("key").values_list("key", "error")
    unread = [
        {"name": key.removeprefix(source.key_prefix), "reason": error}
        for key, error in failed[:SHOWN_FAILURES]
    ]
    lines = [f"  not read: {each['name']}: {each['reason']}" for each in unread]
    if waiting:
        lines.append(f"  {waiting:,} to be indexed by the workers; no search finds them before.")
    return {"waiting": waiting, "unread": unread}, lines


def try_source(options: Options) -> CommandOutput:
    output = report_changes(_source(options))
    return replace(output, warnings=("`sources try` is called `sources run --dry-run` now.",))


def report_changes(source: DataSource) -> CommandOutput:
    """What a run would do."""
    try:
        comparison, gone, why = services.preview(source, is_patient=True)
    except SourceError as error:
        raise NotFound(str(error)) from error
    lines = [
        *(f"new: {name}" for name in comparison.new_names),
        *(f"changed: {name}" for name in comparison.changed_names),
        *(f"gone: {name}" for name in gone),
        *(f"refused: {name}: {reason}" for name, reason in comparison.refused),
        f"{comparison.new:,} new, {comparison.changed:,} changed, {comparison.unchanged:,}"
        f" unchanged, {len(gone):,} gone",
        *([f"It would stop: {why}"] if why else []),
    ]
    report = {
        "counts": {
            "new": comparison.new,
            "changed": comparison.changed,
            "unchanged": comparison.unchanged,
            "gone": len(gone),
        },
        "new": comparison.new_names,
        "changed": comparison.changed_names,
        "gone": gone,
        "refused": [{"name": name, "reason": reason} for name, reason in comparison.refused],
        "would_stop": why,
    }
    return CommandOutput(report, lines)


def change_source(options: Options) -> CommandOutput:
    source = _source(options)
    changes: dict[str, Any] = {}
    if options["new_name"] is not None:
        changes["name"] = options["new_name"]
    if options["option"]:
        changes["options"] = {**source.options, **dict(options["option"])}
    if options["schedule"] is not None:
        changes["schedule"] = options["schedule"]
    if not changes:
        raise InvalidInput("Say what to change: --name, --option or --schedule.")
    services.update_source(source=source, **changes)
    told = ", ".join(sorted(changes))
    return CommandOutput(_source_report(source), [f"{source} is changed: {told}."])


def cancel_source(options: Options) -> CommandOutput:
    source = _source(options)
    going_on = list(DataSourceRun.objects.filter(source=source, finished_at=None))
    for run in going_on:
        services.cancel_run(run=run)
    line = "It ends within seconds." if going_on else f"{source} is not being read."
    return CommandOutput({"cancelled": [run.pk for run in going_on]}, [line])


def list_runs(options: Options) -> CommandOutput:
    runs = list(_source(options).runs.all()[: options["limit"]])
    counts = ("listed", "new", "changed", "fetched", "renamed", "deleted", "failed")
    rows = [
        [run.started_at, run.get_cause_display(), run.get_state_display()]
        + [getattr(run, name) for name in counts]
        + [run.error]
        for run in runs
    ]
    return CommandOutput(
        list(map(_run_report, runs)),
        [] if rows else ["It has not run yet."],
        headings=("started", "by", "state", *counts, "error"),
        rows=rows,
    )


def list_failures(options: Options) -> CommandOutput:
    failed = _source(options).items.filter(failures__gt=0).order_by("name")[: options["limit"]]
    rows = [[item.name, item.failures, item.error] for item in failed]
    data = [dict(zip(("name", "tries", "reason"), row, strict=True)) for row in rows]
    return CommandOutput(
        data,
        [] if rows else ["All files could be fetched."],
        headings=("file", "tries", "reason"),
        rows=rows,
    )


def make_webhook(options: Options) -> CommandOutput:
    source = _source(options)
    if options["off"]:
        services.remove_webhook(source=source)
        return CommandOutput({"webhook": None}, [f"{source} takes calls no more."])
    secret = services.make_webhook_secret(source=source)
    address = f"{settings.SITE_URL.rstrip('/')}{reverse('source_hook', args=[source.pk])}"
    return CommandOutput(
        {"address": address, "secret": secret},
        [f"address: {address}", f"secret:  {secret}", "The secret is shown this once."],
    )


def encrypt_secrets(options: Options) -> CommandOutput:
    count = services.encrypt_anew()
    line = f"The secrets of {count:,} sources are encrypted by the newest key."
    return CommandOutput({"sources": count}, [line])


def retry_source(options: Options) -> CommandOutput:
    count = services.retry_items(source=_source(options))
    return CommandOutput({"retried": count}, [f"{count:,} will be fetched again at the next run."])


def remove_source(options: Options) -> CommandOutput:
    source = _source(options)
    report = _source_report(source)
    services.delete_source(source=source, with_documents=options["with_documents"])
    return CommandOutput(report, [f"{report['name']} is removed."])


def _source(options: Options) -> DataSource:
    rows = DataSource.objects.filter(workspace__slug=options["workspace"])
    found = rows.filter(name=options["name"]).select_related("collection").first()
    if found is None:
        names = ", ".join(rows.values_list("name", flat=True)[:20]) or "none yet"
        raise NotFound(f"There is no source “{options['name']}”. There are: {names}.")
    return found


def _source_report(source: DataSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "kind": source.connector,
        "collection": source.collection.slug,
        "options": source.options,
        "schedule": source.schedule,
        "state": source.state,
        "problem": source.problem,
        "error": source.error,
        "due_at": source.due_at,
    }


def _run_report(run: DataSourceRun) -> dict[str, Any]:
    counts = ("listed", "new", "changed", "fetched", "renamed", "deleted", "failed", "bytes")
    return {
        "id": run.pk,
        "state": run.state,
        "cause": run.cause,
        "error": run.error,
        **{name: getattr(run, name) for name in counts},
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def _run_line(run: DataSourceRun) -> str:
    counts = ("listed", "new", "changed", "fetched", "renamed", "deleted", "failed")
    told = ", ".join(f"{number:,} {name}" for name in counts if (number := getattr(run, name)))
    line = f"{run.started_at:%Y-%m-%d %H:%M} {run.get_state_display()}: {told or 'nothing'}"
    return f"{line}. {run.error}" if run.error else line
