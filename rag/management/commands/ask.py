"""`manage.py ask "…" --collection C`: an answer with its sources, in a terminal or as JSON."""

import json
from argparse import ArgumentParser, BooleanOptionalAction
from collections.abc import Iterator

from django.core.management.base import CommandError

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace
from common.console import FATAL, Options, ServiceCommand, add_json_option
from common.options.commandline import add_options
from memory.scopes import command_user
from rag.context import RagContext
from rag.events import (
    Citation,
    Done,
    Event,
    Failed,
    Metadata,
    ReasoningToken,
    Retrieval,
    Tables,
    Token,
    answer_text,
    passage_data,
    without_withdrawn,
)
from rag.services.answers import answer
from rag.services.questions import Question
from search.query_options import RetrievalOptions, ScopeOptions
from search.results import MODES


class Command(ServiceCommand):
    help = (
        "Answer a question from documents, with citations. Exit code: 0 answered, also where the"
        " documents do not say or the answer is not sure; 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("question")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        add_options(parser, ScopeOptions, only={"collection", "filter"})
        parser.add_argument("--model", default="", help="a chat model; `extractive` quotes")
        parser.add_argument(
            "--whole",
            action=BooleanOptionalAction,
            help="put all of the collections before the chat model; default: where they are small",
        )
        parser.add_argument("--mode", choices=MODES, default="hybrid", help="of the search")
        add_options(parser, RetrievalOptions)
        add_json_option(parser)

    def run(self, options: Options) -> None:
        workspace = get_or_create_workspace(slug=options["workspace"])
        context = RagContext(
            user=None,
            workspace=workspace,
            memory_user=command_user(workspace),
            collections=tuple(options["collection"]),
            filter=options["filter"],
        )
        question = Question(
            options["question"],
            model=options["model"],
            whole=options["whole"],
            mode=options["mode"],
            search_options=RetrievalOptions.pick(options).given(),
        )
        events = answer(question, context=context)
        last_event = self._as_json(events) if options["json"] else self._print_events(events)
        if isinstance(last_event, Failed):
            raise CommandError(last_event.detail, returncode=FATAL)

    def _print_events(self, events: Iterator[Event]) -> Event | None:
        cited: dict[int, Citation] = {}
        event: Event | None = None
        for event in events:
            match event:
                case Retrieval(degraded=degraded) if degraded:
                    self.stderr.write(f"Not all of the search worked: {', '.join(degraded)}.")
                case Token(text=text):
                    self.stdout.write(text, ending="")
                    self.stdout.flush()
                case ReasoningToken(withdrawn_from=int()):
                    self.stdout.write("\n")
                    self.stderr.write("So far it was the model's reasoning. The answer:")
                    cited.clear()
                case Tables(computed=None, text=text):
                    self.stderr.write(text)
                case Citation():
                    cited.setdefault(event.passage.number, event)
                case Done():
                    self.stdout.write("\n")
        for number, citation in sorted(cited.items()):
            passage = citation.passage
            place = ", ".join(
                filter(None, [passage.collection_slug, passage.location(citation.start)])
            )
            self.stdout.write(f"[{number}] {passage.heading} ({place})")
        return event

    def _as_json(self, events: Iterator[Event]) -> Event | None:
        collected = without_withdrawn(events)
        found = {
            passage.number: passage_data(passage)
            for event in collected
            if isinstance(event, Retrieval)
            for passage in event.passages
        }
        metadata = next((event.data() for event in collected if isinstance(event, Metadata)), {})
        done = next((event.data() for event in collected if isinstance(event, Done)), {})
        if done:
            result = {
                "question": metadata["question"],
                "model": metadata["model"],
                "answer": answer_text(collected),
                "confidence": done["verdict"]["confidence"],
                "citations": [event.data() for event in collected if isinstance(event, Citation)],
                "passages": list(found.values()),
                "tables": next((e.data() for e in collected if isinstance(e, Tables)), None),
                "missing": [
                    name
                    for event in collected
                    if isinstance(event, Retrieval)
                    for name in event.missing
                ],
                **done,
            }
            self.stdout.write(json.dumps(result, ensure_ascii=False, indent=2))
        return collected[-1]
