"""Tools over what was said: answers in text."""

from common.wording import found, quoted, shortened
from memory import services
from memory.scopes import UserScope
from memory.tools.wording import NOTHING_KEPT, told

MAX_RESULTS = 20


def archive_turn(
    *, scope: UserScope | None, user_message: str, assistant_response: str = ""
) -> str:
    """Keep a turn of the conversation."""
    archived = services.archive_turn(
        scope=scope, user_message=user_message, assistant_response=assistant_response
    )
    if archived is None:
        return NOTHING_KEPT
    return "Archived." if archived.is_new else "Archived before; it is as fresh as now."


def search_memory(*, scope: UserScope | None, query: str, max_results: int = 5) -> str:
    """What was said before, the most relevant first."""
    result = services.search_memory(scope=scope, query=query, max_results=int(max_results))
    entries = [
        f"{place}. said {told(hit.context.created_at)}, relevance {hit.ranked.relevance:.2f}\n"
        f"   User: {quoted(shortened(hit.context.user_message))}\n"
        f"   Assistant: {quoted(shortened(hit.context.assistant_response))}"
        for place, hit in enumerate(result.hits, 1)
    ]
    return "\n".join([found(len(entries), "archived conversation(s)"), *entries])


def store_memory(*, scope: UserScope | None, question: str, answer: str) -> str:
    """Keep a question with its answer."""
    stored = services.store_memory(scope=scope, question=question, answer=answer)
    return NOTHING_KEPT if stored is None else "Stored."


def clear_memory(*, scope: UserScope | None, question: str) -> str:
    """Forget everything that was answered to a question."""
    removed = services.clear_memory(scope=scope, question=question)
    return f"Forgot {removed} archived conversation(s)."
