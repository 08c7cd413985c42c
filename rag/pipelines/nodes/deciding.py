"""router, gate, aggregator and evaluator: which way it goes on, and with what."""

from rag.pipelines import conditions, replies
from rag.pipelines.code_syntax import syntax_faults
from rag.pipelines.engine import NodeCall, NodeResult, RunError
from rag.pipelines.kit import Bench, Kit, text_of
from rag.pipelines.nodes import prompts

_ROUTER = """\
Choose how the question is to be worked on. The ways are:
{routes}

Answer with the name of one way, exactly as it stands there, and nothing else.\
"""
_EVALUATOR = """\
Judge how well the text that the steps before you made answers the question{further}. Answer with \
one JSON object and nothing else: {{"score": 0.0, "reason": "..."}}. The score goes from 0, \
useless, to 1, nothing to improve. The reason says shortly what is to be improved.\
"""
_AGAIN = "Your answer {problem}. Answer again, in exactly the form that was asked for."


def router(call: NodeCall, kit: Kit) -> NodeResult:
    """Let the model choose an edge; what was handed over goes along it."""
    bench, marked = kit.bench(call), prompts.Marked()
    routes = "\n".join(f"- {route}" for route in call.routes)
    rules = marked.rules(call.node.prompt, _ROUTER.format(routes=routes))
    blocks = prompts.handed(marked, call.inputs, budget=kit.budget_tokens)
    asked = prompts.asked(call.question, blocks)
    message = bench.ask(prompts.conversation(rules, kit.history, asked, kit.budget_tokens))
    route = replies.picked(text_of(message), call.routes)
    return NodeResult(joined(call), route=route, sources=bench.sources)


def gate(call: NodeCall, kit: Kit) -> NodeResult:
    """Let pass what meets the condition."""
    output = joined(call)
    condition = conditions.parse(call.node.options["condition"])
    facts = {"output": output, "question": call.question, "iteration": call.iteration}
    return NodeResult(output, passed=condition.holds(facts), sources=call.sources)


def aggregator(call: NodeCall, kit: Kit) -> NodeResult:
    """Join what the parents hand over."""
    return NodeResult(joined(call, call.node.options["separator"]), sources=call.sources)


def evaluator(call: NodeCall, kit: Kit) -> NodeResult:
    """Score what the parents hand over; of what will not do the best goes on in the end. With
    `syntax` “check” code that cannot be parsed scores 0, and the model is not asked."""
    threshold = call.node.options["threshold"]
    output = joined(call)
    faults = (
        syntax_faults(output, language=kit.language)
        if call.node.options["syntax"] == "check"
        else []
    )
    if faults:
        score, reason = 0.0, "\n".join(["The code cannot be parsed.", *map(str, faults)])
    else:
        score, reason = _scored(kit.bench(call), kit, call)
    result = NodeResult(
        output,
        passed=score >= threshold,
        score=score,
        feedback=f"Score {score:g}, and at least {threshold:g} is needed. {reason}\n\n{output}",
        sources=call.sources,
    )
    if result.passed or call.may_repeat:
        return result
    if call.node.options["on_exhausted"] == "fail":
        raise RunError(
            "evaluation_failed",
            f"The evaluator “{call.node.id}” gave {score:g} where {threshold:g} is needed:"
            f" {reason[:500]} Allow more rounds, or a lower threshold.",
            status=422,
            node=call.node.id,
        )
    return max((*call.earlier, result), key=lambda each: each.score or 0.0)


def joined(call: NodeCall, separator: str = "\n\n") -> str:
    """What the parents hand over, in the order of the definition."""
    return separator.join(each.output for each in call.inputs if not each.is_feedback)


def _scored(bench: Bench, kit: Kit, call: NodeCall) -> tuple[float, str]:
    marked = prompts.Marked()
    demands = [each for each in (call.node.prompt, kit.demands) if each]
    further = ", and how well it does what is demanded above" if demands else ""
    rules = marked.rules(*demands, _EVALUATOR.format(further=further))
    blocks = prompts.handed(marked, call.inputs, budget=kit.budget_tokens)
    asked = prompts.asked(call.question, blocks)
    messages = prompts.conversation(rules, (), asked, kit.budget_tokens)
    return bench.read(messages, replies.score, again=_AGAIN)
