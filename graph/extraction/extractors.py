"""The two extractors: rules (`read_by_rules`) and the chat model (`read_by_model`)."""

from collections.abc import Callable, Iterable, Iterator

from django.conf import settings

from common.text import pluralized
from documents.models import Collection
from graph.extraction import code, links, names
from graph.extraction.chat_model import extraction_messages, read_reply
from graph.extraction.mentions import (
    Extraction,
    Mention,
    MentionCounter,
    Relation,
    Source,
    SourcePassage,
)
from inference.interfaces import (
    AnswerRefused,
    BackendUnavailable,
    ChatModel,
    EmptyAnswer,
    MalformedAnswer,
)
from inference.remote.retry import ServerRefused
from inference.replies import UnreadableReply
from model_servers.token_limits import require_tokens
from model_servers.usage import Purpose, metered_chat

#: Of one passage, by all parts together.
MAX_MENTIONS = 200

Rule = Callable[[Source], Iterator[Mention]]
#: Names of the document come first: full passages drop the mentions of later rules.
RULES: tuple[Rule, ...] = (
    names.title_mentions,
    links.link_mentions,
    links.table_mentions,
    code.code_mentions,
    names.name_mentions,
    names.date_mentions,
)


#: Increased when results change, so that outdated extractions are known.
RULES_VERSION, MODEL_VERSION = 2, 1
#: Attempts per passage: replies vary.
MODEL_TRIES = 2
_REPLY_ERRORS = (UnreadableReply, EmptyAnswer, AnswerRefused, MalformedAnswer)


class NoChatModel(BackendUnavailable):
    """The collection is to be extracted by a chat model, and none is set up."""

    def __init__(self) -> None:
        super().__init__(
            "this collection is read for the graph by a chat model, and the site has none: set"
            " CHAT_BACKEND and CHAT_OPTIONS, or have the collection read by rules."
        )


def recipe_of(mode: str, *, workspace_id: int) -> str:
    """Name and version of the extractor that collections of the workspace with this mode use now.
    Does not call the model.
    """
    if mode != Collection.Graph.LLM:
        return f"rules {RULES_VERSION}"
    model = metered_chat(workspace_id=workspace_id, purpose=Purpose.GRAPH)
    name = model.model_name if model else "none"
    return f"llm {MODEL_VERSION} {name}"[:64]


def _mentions_by_rules(source: Source, rules: Iterable[Rule]) -> MentionCounter:
    tally = MentionCounter(most=MAX_MENTIONS)
    for rule in rules:
        for mention in rule(source):
            tally.add(mention)
    return tally


def read_by_rules(source: Source) -> Extraction:
    """All mentions that rules find, at most one per passage and form."""
    return Extraction(mentions=tuple(_mentions_by_rules(source, RULES).mentions()))


def read_by_model(
    source: Source, *, workspace_id: int, goes_on: Callable[[], bool] = lambda: True
) -> tuple[Extraction, str]:
    """Extraction by the workspace's chat model, passage by passage, and a note of failed passages.

    `goes_on` is called before each passage. Raises InferenceError where the model is
    unavailable, UnreadableReply where all passages failed, and TooManyRequests where the tokens
    of the workspace are used up.
    """
    model = metered_chat(workspace_id=workspace_id, purpose=Purpose.GRAPH)
    if model is None:
        raise NoChatModel
    require_tokens(workspace_id=workspace_id)
    # The model finds the names.
    tally = _mentions_by_rules(source, (rule for rule in RULES if rule != names.name_mentions))
    relations: list[Relation] = []
    asked = min(len(source.passages), settings.GRAPH_EXTRACTION_PASSAGES)
    unread: list[Exception] = []
    for at in range(asked):
        if not goes_on():
            break
        try:
            found = _ask_model(model, source, source.passages[at], at)
        except Exception as error:
            if not is_passage_error(error):
                raise
            unread.append(error)
        else:
            for mention in found.mentions:
                tally.add(mention)
            relations += found.relations
    if asked and len(unread) == asked:
        raise unread[-1]
    # Without relations whose ends did not fit into the passage's maximum of mentions.
    mentions = tuple(tally.mentions())
    there = {(mention.passage, mention.form) for mention in mentions}
    kept = [
        each
        for each in relations
        if {(each.passage, each.source), (each.passage, each.target)} <= there
    ]
    notes = []
    if unread:
        notes.append(f"The model could not read {len(unread)} of {asked} passages. {unread[-1]}")
    if asked < len(source.passages):
        notes.append(
            f"Only the first {asked} of {pluralized(len(source.passages), 'passage')} were read."
        )
    return Extraction(mentions, tuple(kept)), " ".join(notes)


def is_passage_error(error: Exception) -> bool:
    """Whether the model was available and failed on this passage."""
    rejected = isinstance(error, ServerRefused) and error.rejects_request
    return rejected or isinstance(error, _REPLY_ERRORS)


def _ask_model(model: ChatModel, source: Source, passage: SourcePassage, at: int) -> Extraction:
    for left in reversed(range(MODEL_TRIES)):
        try:
            answer = model.complete(
                extraction_messages(source, passage),
                max_tokens=settings.GRAPH_EXTRACTION_MAX_TOKENS,
                temperature=settings.GRAPH_EXTRACTION_TEMPERATURE,
                timeout=settings.GRAPH_EXTRACTION_SECONDS,
            )
            return read_reply(answer.content, text=passage.text, passage=at)
        except _REPLY_ERRORS:
            if not left:
                raise
    raise AssertionError("unreachable")
