"""How much of a model's context a prompt may take, so that the answer has room. Without Django."""

from inference.interfaces import ChatModel

#: Room for an answer whose length nobody limits, and the share of a small context that it may take.
ANSWER_TOKENS = 1_024
ANSWER_SHARE = 0.25
#: Of rules, question and headings, beside the passages of a prompt.
RULES_TOKENS = 800


def context_tokens(chat: ChatModel | None) -> int | None:
    """Tokens of conversation and answer that the model reads; None where that is unknown."""
    known: int | None = getattr(chat, "context_tokens", None)
    return known


def prompt_tokens(chat: ChatModel | None, *, most: int, answer_tokens: int | None = None) -> int:
    """Tokens that a prompt may have beside an answer of `answer_tokens`: `most`, or less where the
    model's context is smaller."""
    context = context_tokens(chat)
    if context is None:
        return most
    room = min(answer_tokens or ANSWER_TOKENS, int(context * ANSWER_SHARE))
    return min(most, context - room)


def longest_answer_tokens(chat: ChatModel, *, most: int) -> int | None:
    """Tokens after which an answer ends whose length nobody limits: `most` (0: any number), or a
    quarter of the model's context where that is less."""
    context = context_tokens(chat)
    return min(most, int(context * ANSWER_SHARE)) if most and context else most or None


def fitting_answer_tokens(chat: ChatModel, *, prompt: int, answer_tokens: int | None) -> int | None:
    """`answer_tokens`, or as many as fit beside a prompt of `prompt` tokens: more is refused."""
    context = context_tokens(chat)
    if context is None or answer_tokens is None:
        return answer_tokens
    return max(1, min(answer_tokens, context - prompt))
