"""llm and synthesizer: words of a chat model, or without one quotations of what was found."""

from django.conf import settings

from common.connections import give_back
from documents.languages import detect_language
from rag.answering.evidence import gather
from rag.answering.extractive import extract
from rag.answering.passages import from_hits
from rag.answering.refusal import judge, not_found_text
from rag.answering.similarity import similar_to
from rag.events import Cited
from rag.passage import Passage
from rag.pipelines.engine import NodeCall, NodeResult
from rag.pipelines.kit import Bench, Kit, text_of
from rag.pipelines.nodes import prompts
from rag.pipelines.nodes.working import whole_question
from rag.pipelines.pieces import Verbatim
from search.services import search

_SYNTHESIZER = (
    "Write one answer to the question out of what the steps before you found. Where they contradict"
    " each other, say so. Say nothing twice."
)


def llm(call: NodeCall, kit: Kit) -> NodeResult:
    """Ask the model once."""
    return _write(call, kit, role="")


def synthesizer(call: NodeCall, kit: Kit) -> NodeResult:
    """One answer of what the parents hand over."""
    return _write(call, kit, role=_SYNTHESIZER)


def _write(call: NodeCall, kit: Kit, *, role: str) -> NodeResult:
    bench = kit.bench(call)
    passages = bench.passages()
    if bench.chat is None:
        return _quote(call, bench, passages)
    marked, budget = prompts.Marked(), kit.budget_tokens
    grounded = call.node.id in kit.grounded
    language = kit.language or _language(call.question, passages)
    rules = marked.rules(
        prompts.citing(grounded=grounded, language=language) if passages or grounded else "",
        role,
        call.node.prompt,
        kit.demands,
    )
    blocks = prompts.handed(marked, call.inputs, budget=budget)
    blocks += prompts.numbered(marked, passages, budget=budget)
    message = bench.ask(
        prompts.conversation(rules, kit.history, prompts.asked(call.question, blocks), budget),
        emits=call.is_sink,
    )
    return NodeResult(text_of(message), sources=bench.sources)


def _quote(call: NodeCall, bench: Bench, passages: list[Passage]) -> NodeResult:
    """The sentences of what was found that fit the question best."""
    if not passages or not _is_answerable(bench):
        text = not_found_text(bench.kit.language or _language(call.question, passages))
        call.emit(Verbatim(text))
        return NodeResult(text)
    question = whole_question(bench)
    similar = similar_to(question, passages)
    language = bench.kit.language or _language(question, passages)
    give_back()
    extracted = extract(question, passages, similar=similar, language=language)
    for piece in extracted.pieces:
        call.emit(piece if isinstance(piece, Cited) else Verbatim(piece))
    return NodeResult(extracted.text, sources=bench.sources)


def _is_answerable(bench: Bench) -> bool:
    """Whether the question, searched for as it stands, finds what can hold its answer: tools bring
    the nearest there is, however far that is."""
    query = whole_question(bench)
    scope = bench.context.search_scope()
    options = bench.context.search_options
    result = search(query, scope=scope, k=settings.RAG_PASSAGES, snippets=False, **options)
    found = from_hits(result.hits)
    return judge(gather(result, found, scope=scope)).answers


def _language(question: str, passages: list[Passage]) -> str:
    return detect_language(question, default=passages[0].language if passages else "")
