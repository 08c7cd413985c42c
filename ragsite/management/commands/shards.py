"""`manage.py shards`: further servers for workspaces."""

import sys
from argparse import ArgumentParser
from dataclasses import asdict

from django.conf import settings
from django.template.defaultfilters import filesizeformat

from accounts.services import get_workspace_by_slug
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand
from common.shards import MAIN
from ragsite.replication import ShardError
from ragsite.shards import prepare_shard, shard_states
from ragsite.workspace_moves import DRAIN_SECONDS, move_workspace


class Command(ServiceCommand):
    stays_in_main = True
    help = (
        "Servers of DATABASE_SHARD_URLS: their state, making them ready, and moving workspaces"
        " between them while they are used. Exit code: 0 done, and all shards are in order; 1 one"
        " of them is not; 2 not done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        add("list", self.list, "each shard with its workspaces, and whether it is in order")
        add("prepare", self.prepare, "migrate all shards, and have accounts copied to them")
        move = add("move", self.move, "move a workspace to another shard, while it is used")
        move.add_argument("workspace", help="slug")
        move.add_argument("to", help="name of the shard; main for the main database")
        move.add_argument(
            "--wait",
            type=float,
            default=DRAIN_SECONDS,
            metavar="SECONDS",
            help="what those who write have to finish, before they are refused",
        )

    def list(self, options: Options) -> CommandOutput:
        states = shard_states()
        return CommandOutput(
            [asdict(state) for state in states],
            headings=["shard", "state", "workspaces", "documents", "size", "bytes behind"],
            rows=[
                [
                    state.name,
                    state.detail,
                    state.workspaces,
                    state.documents,
                    filesizeformat(state.bytes).replace("\xa0", " "),
                    state.behind,
                ]
                for state in states
            ],
            code=0 if all(state.ok for state in states) else PARTIAL,
        )

    def prepare(self, options: Options) -> CommandOutput:
        if not settings.DATABASE_SHARDS:
            raise ShardError("DATABASE_SHARD_URLS names no shard: east=postgresql://… adds one.")
        for name in settings.DATABASE_SHARDS:
            prepare_shard(name, say=_say)
        return self.list(options)

    def move(self, options: Options) -> CommandOutput:
        workspace = get_workspace_by_slug(options["workspace"])
        to = MAIN if options["to"] == "main" else options["to"]
        move_workspace(workspace=workspace, to=to, say=_say, drain_seconds=options["wait"])
        shown = to or "main"
        return CommandOutput(
            {"workspace": workspace.slug, "shard": shown}, [f"{workspace.slug} is on {shown}"]
        )


def _say(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr, flush=True)
