"""Who reads documents: rules, or the configured chat model; and by what recipe."""

from collections.abc import Callable

from django.conf import settings

from common.wording import counted
from documents.models import Collection
from graph.extraction import code, dates, links, rules, schema, titles
from graph.extraction.found import Extraction, Passage, Relation, Source
from graph.extraction.prompt import extraction_messages
from graph.extraction.replies import UnreadableReply, read_reply
from graph.extraction.tally import Tally
from inference.base import (
    AnswerRefused,
    BackendUnavailable,
    ChatModel,
    EmptyAnswer,
    MalformedAnswer,
)
from inference.handler import chats, has_chat
from inference.remote.errors import ServerRefused

#: Raised when what is found changes, so that it is known which documents were read before.
RULES_VERSION, MODEL_VERSION = 1, 1
#: Tries for one passage: what a model writes differs from time to time.
TRIES = 2
#: What a model is not needed for. The names are its own.
STRUCTURE: tuple[rules.Part, ...] = (
    titles.mentions,
    links.mentions,
    schema.mentions,
    code.mentions,
    dates.mentions,
)
_OF_THE_MODEL = (UnreadableReply, EmptyAnswer, AnswerRefused, MalformedAnswer)
#: Answers of a server that has something against this passage, and not against all.
_OF_THE_REQUEST = frozenset((400, 413, 422))


class NoModel(BackendUnavailable):
    """The collection is to be read by a chat model, and the site has none."""

    def __init__(self) -> None:
        super().__init__(
            "this collection is read for the graph by a chat model, and the site has none: set"
            " CHAT_BACKEND and CHAT_OPTIONS, or have the collection read by rules."
        )


def recipe_of(mode: str) -> str:
    """How documents of a collection with this mode are read now. Asks no model."""
    if mode != Collection.Graph.LLM:
        return f"rules {RULES_VERSION}"
    name = chats["default"].model_name if has_chat() else "none"
    return f"llm {MODEL_VERSION} {name}"[:64]


def read_by_rules(source: Source) -> Extraction:
    """What rules find."""
    return rules.extract(source)


def read_by_model(
    source: Source, *, goes_on: Callable[[], bool] = lambda: True
) -> tuple[Extraction, str]:
    """What the chat model finds, passage by passage, and a note where it could not read some.

    `goes_on` is asked before each passage. Raises InferenceError where there is no model to ask,
    and UnreadableReply where it could read none of the passages.
    """
    if not has_chat():
        raise NoModel
    model = chats["default"]
    tally = Tally(most=rules.MOST)
    for part in STRUCTURE:
        for mention in part(source):
            tally.add(mention)
    relations: list[Relation] = []
    asked = min(len(source.passages), settings.GRAPH_EXTRACTION_PASSAGES)
    unread: list[Exception] = []
    for at in range(asked):
        if not goes_on():
            break
        try:
            found = _ask(model, source, source.passages[at], at)
        except Exception as error:
            if not is_of_the_passage(error):
                raise
            unread.append(error)
        else:
            for mention in found.mentions:
                tally.add(mention)
            relations += found.relations
    if asked and len(unread) == asked:
        raise unread[-1]
    return _whole(tally, relations), _note(source, asked, unread)


def is_of_the_passage(error: Exception) -> bool:
    """Whether the model was there and could not read this, rather than away."""
    if isinstance(error, ServerRefused):
        return error.too_large or error.status in _OF_THE_REQUEST
    return isinstance(error, _OF_THE_MODEL)


def _ask(model: ChatModel, source: Source, passage: Passage, at: int) -> Extraction:
    for left in reversed(range(TRIES)):
        try:
            answer = model.complete(
                extraction_messages(source, passage),
                max_tokens=settings.GRAPH_EXTRACTION_MAX_TOKENS,
                temperature=settings.GRAPH_EXTRACTION_TEMPERATURE,
                timeout=settings.GRAPH_EXTRACTION_SECONDS,
            )
            return read_reply(answer.content, text=passage.text, passage=at)
        except _OF_THE_MODEL:
            if not left:
                raise
    raise AssertionError("unreachable")


def _whole(tally: Tally, relations: list[Relation]) -> Extraction:
    """A passage may have been too full for an end of a relation: that is left out then."""
    mentions = tuple(tally.mentions())
    there = {(mention.passage, mention.form) for mention in mentions}
    kept = [
        relation
        for relation in relations
        if {(relation.passage, relation.source), (relation.passage, relation.target)} <= there
    ]
    return Extraction(mentions, tuple(kept))


def _note(source: Source, asked: int, unread: list[Exception]) -> str:
    notes = []
    if unread:
        notes.append(f"The model could not read {len(unread)} of {asked} passages. {unread[-1]}")
    if asked < len(source.passages):
        notes.append(
            f"Only the first {asked} of {counted(len(source.passages), 'passage')} were read."
        )
    return " ".join(notes)
