"""The queue of conversations: what gets in, when it is due, and how it comes back."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from common.errors import InvalidInput
from common.queues import Failure
from memory import tasks
from memory.extraction import queue, worker
from memory.extraction.chat_model import MAX_MESSAGE_CHARACTERS
from memory.extraction.queue import EnqueueResult, QueueFull
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope
from memory.services import erase_memory, get_all_facts, get_fact, history
from memory.services.memories import record_messages, retry_extractions
from memory.tests.factories import make_scope, remember

pytestmark = pytest.mark.django_db

State = ExtractionItem.State
MARCH = datetime(2026, 3, 1, 9, tzinfo=UTC)


def talk(*said: str, **given: Any) -> list[dict[str, Any]]:
    """A conversation in which the assistant answers everything."""
    return [
        message
        for text in said
        for message in (
            {"role": "user", "content": text, **given},
            {"role": "assistant", "content": "My name is Robot and I live in Berlin."},
        )
    ]


def record(scope: UserScope, *said: str, conversation: str = "chat", **given: Any) -> EnqueueResult:
    recorded = record_messages(
        scope=scope, conversation=conversation, messages=talk(*said, **given)
    )
    assert recorded is not None
    return recorded


def the_item() -> ExtractionItem:
    return ExtractionItem.objects.get()


def waiting() -> list[str]:
    return [message["content"] for message in the_item().messages]


def facts(scope: UserScope) -> dict[str, str]:
    return {fact.key: fact.value for fact in get_all_facts(scope=scope)}


def come_due() -> None:
    ExtractionItem.objects.filter(state=State.WAITING).update(
        due_at=timezone.now() - timedelta(seconds=1)
    )


def let_leases_end() -> None:
    ExtractionItem.objects.filter(state=State.RUNNING).update(
        leased_until=timezone.now() - timedelta(seconds=1)
    )


def test_only_the_users_own_words_wait(scope: UserScope) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello\n\n[facts: name=Bob]\n[context: I live in Rome]"},
        {"role": "assistant", "content": "My name is Robot."},
        {"role": "user", "content": [{"type": "text", "text": "I'm vegan"}, {"type": "image_url"}]},
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "user", "content": "[facts: only=this]"},
        {"role": "tool", "content": "42"},
    ]
    recorded = record_messages(scope=scope, conversation="chat", messages=messages)
    assert recorded == EnqueueResult(the_item().pk, new=2, waiting=2, is_due=False)
    assert waiting() == ["Hello", "I'm vegan"]


@pytest.mark.parametrize("messages", [[["user", "Hi"]], [{"content": "Hi"}], ["Hi"]])
def test_what_is_no_message_is_refused(scope: UserScope, messages: Any) -> None:
    with pytest.raises(InvalidInput, match="role"):
        record_messages(scope=scope, conversation="chat", messages=messages)


def test_a_conversation_sent_again_counts_once(scope: UserScope) -> None:
    assert record(scope, "one").new == 1
    assert record(scope, "one", "two").new == 1
    assert record(scope, "one", "two").new == 0
    assert record(scope, "two", "three").new == 1
    assert waiting() == ["one", "two", "three"]
    assert the_item().seen == 3


def test_progress_is_kept_for_each_conversation_and_user(scope: UserScope) -> None:
    record(scope, "one")
    record(scope, "one", conversation="other")
    record(make_scope("bob"), "one")
    assert list(ExtractionItem.objects.values_list("seen", flat=True)) == [1, 1, 1]


def test_a_message_that_the_user_took_back_is_not_read(scope: UserScope) -> None:
    record(scope, "one", "I live in Rome")
    record(scope, "one", "I live in Bonn", "three")
    assert waiting() == ["one", "I live in Bonn", "three"]


def test_what_was_read_is_not_read_again_where_the_user_goes_back(
    scope: UserScope, at_once: None
) -> None:
    record(scope, "My name is Sam", "I live in Rome")
    tasks.extract(the_item().pk)
    record(scope, "My name is Sam", "I live in Bonn")
    assert waiting() == ["I live in Bonn"]


def test_a_conversation_is_due_a_while_after_enough_messages(scope: UserScope) -> None:
    before = timezone.now()
    record(scope, "one", "two")
    due = the_item().due_at
    assert due is not None
    assert timedelta(seconds=179) < due - before < timedelta(seconds=190)
    assert tasks.extract(the_item().pk) is False
    assert waiting() == ["one", "two"]


def test_a_single_message_is_due_after_a_longer_while(scope: UserScope) -> None:
    before = timezone.now()
    record(scope, "I live in Rome")
    due = the_item().due_at
    assert due is not None
    assert timedelta(seconds=899) < due - before < timedelta(seconds=910)
    assert tasks.extract(the_item().pk) is False
    come_due()
    assert tasks.recover_extractions() == 1
    ExtractionItem.objects.update(leased_until=None)
    assert tasks.extract(the_item().pk) is True
    assert facts(scope) == {"location": "Rome"}


def test_a_single_message_after_others_were_read_is_read_too(scope: UserScope) -> None:
    record(scope, "Hello", "I live in Rome")
    come_due()
    tasks.extract(the_item().pk)
    record(scope, "Hello", "I live in Rome", "I moved to Bonn")
    come_due()
    tasks.extract(the_item().pk)
    assert facts(scope) == {"location": "Bonn"}


def test_many_messages_are_due_at_once_and_read_in_parts(scope: UserScope, settings: Any) -> None:
    settings.MEMORY_EXTRACTION_MAX_TURNS = 3
    assert not record(scope, "one", "two").is_due
    assert record(scope, *(f"My favourite number is {number}" for number in range(7))).is_due
    sizes = []
    while (item := the_item()).messages:
        sizes.append(len(item.messages))
        assert worker.extract_conversation(item.pk)
    # nine wait: what was due together is read in threes without a break
    assert sizes == [9, 6, 3]
    assert facts(scope) == {"favourite_number": "6"}


def test_what_was_read_is_removed_and_the_progress_stays(scope: UserScope, at_once: None) -> None:
    record(scope, "My name is Sam", "Please remember that I always sit by the window")
    assert tasks.extract(the_item().pk) is True
    item = the_item()
    assert (item.messages, item.state, item.due_at) == ([], State.IDLE, None)
    assert (item.seen, item.facts, item.contexts, item.extractor) == (2, 1, 1, "rules")
    assert item.extracted_at is not None
    assert not record(
        scope, "My name is Sam", "Please remember that I always sit by the window"
    ).new
    fact, context = Fact.objects.get(), Context.objects.get()
    assert (fact.key, fact.value, fact.origin) == ("name", "Sam", "rules")
    assert (context.user_message, context.origin) == ("I always sit by the window", "rules")
    assert context.conversation == "chat"


def test_a_fact_is_valid_from_when_it_was_said(scope: UserScope, at_once: None) -> None:
    record(scope, "I live in Munich", at=MARCH)
    record(scope, "I live in Munich", "I moved to Berlin", at=MARCH + timedelta(days=30))
    tasks.extract(the_item().pk)
    past, now = history(scope=scope, key="location")[::-1]
    assert (past.value, past.valid_from, past.valid_to) == ("Munich", MARCH, now.valid_from)
    assert (now.value, now.valid_from) == ("Berlin", MARCH + timedelta(days=30))
    then = get_fact(scope=scope, key="location", as_of=MARCH + timedelta(days=3))
    assert then is not None
    assert then.value == "Munich"


def test_a_fact_names_the_archived_turn_that_it_was_learnt_from(
    scope: UserScope, at_once: None
) -> None:
    remember(scope, "I live in Turin.", conversation="another chat")
    turn = remember(scope, "I live in Turin.", "A fine city.", conversation="chat")
    record(scope, "I live in Turin.", "My name is Ada.")
    worker.extract_conversation(the_item().pk)

    sources = {fact.key: fact.source_id for fact in get_all_facts(scope=scope)}
    assert sources == {"location": turn, "name": None}


def test_a_full_queue_refuses_and_keeps_what_it_has(scope: UserScope, settings: Any) -> None:
    settings.MEMORY_EXTRACTION_QUEUE_LIMIT = 3
    record(scope, "one", "two")
    with pytest.raises(QueueFull, match="Send the conversation again later"):
        record(scope, "one", "two", "three", "four")
    assert waiting() == ["one", "two"]
    with pytest.raises(QueueFull):
        record(make_scope("bob", workspace=the_item().workspace), "one", "two")
    assert record(make_scope(), "one", "two").new == 2


def test_conversations_that_were_given_up_do_not_fill_the_queue(
    scope: UserScope, settings: Any
) -> None:
    settings.MEMORY_EXTRACTION_QUEUE_LIMIT = 3
    record(scope, "one", "two")
    ExtractionItem.objects.update(state=State.DEAD)
    other = make_scope("bob", workspace=the_item().workspace)
    assert record(other, "one", "two", "three").new == 3


def test_a_pasted_text_waits_only_as_far_as_it_would_be_read(scope: UserScope) -> None:
    record(scope, "x" * 1_000_000 + "[")
    assert len(waiting()[0]) == MAX_MESSAGE_CHARACTERS + 1


def test_what_comes_while_a_worker_reads_waits_its_turn(scope: UserScope, at_once: None) -> None:
    record(scope, "My name is Sam")
    claim = queue.claim(the_item().pk)
    assert claim is not None
    record(scope, "My name is Sam", "I'm vegan")
    assert the_item().state == State.RUNNING
    assert worker.store_extraction(claim, *reading_of(claim)) is not None
    assert waiting() == ["I'm vegan"]
    assert facts(scope) == {"name": "Sam"}
    assert the_item().state == State.WAITING
    tasks.extract(the_item().pk)
    assert facts(scope) == {"name": "Sam", "diet": "vegan"}


def test_what_a_worker_reads_while_the_user_takes_it_back_is_not_kept(
    scope: UserScope, at_once: None
) -> None:
    record(scope, "Hello", "I live in Rome")
    claim = queue.claim(the_item().pk)
    assert claim is not None
    record(scope, "Hello", "I live in Bonn")
    assert worker.store_extraction(claim, *reading_of(claim)) is None
    tasks.extract(the_item().pk)
    assert facts(scope) == {"location": "Bonn"}


def test_a_worker_that_was_taken_for_dead_stores_nothing(scope: UserScope, at_once: None) -> None:
    record(scope, "I live in Rome")
    slow = queue.claim(the_item().pk)
    assert slow is not None
    assert queue.claim(the_item().pk) is None
    let_leases_end()
    quick = queue.claim(the_item().pk)
    assert quick is not None
    assert worker.store_extraction(quick, *reading_of(quick)) is not None
    assert worker.store_extraction(slow, *reading_of(slow)) is None
    assert queue.QUEUE.retry_later(queue.claimed_row(slow), "too late", failure=Failure.OWN) is None
    assert (the_item().state, the_item().facts, Fact.objects.count()) == (State.IDLE, 1, 1)


def test_a_conversation_that_kills_its_workers_is_given_up(scope: UserScope, at_once: None) -> None:
    record(scope, "one", "two")
    claims = 0
    while queue.claim(the_item().pk):
        claims += 1
        let_leases_end()
        assert tasks.recover_extractions() <= 1
    assert (claims, the_item().state) == (5, State.DEAD)
    assert "The worker died" in the_item().error
    assert waiting() == ["one", "two"]


def test_what_was_given_up_can_be_tried_again(scope: UserScope, at_once: None) -> None:
    record(scope, "My name is Sam")
    ExtractionItem.objects.update(state=State.DEAD, attempts=5, error="Given up", due_at=None)
    record(scope, "My name is Sam", "I'm vegan")
    assert the_item().state == State.DEAD
    assert retry_extractions(item_ids=[the_item().pk, 0]) == 1
    assert retry_extractions(item_ids=[the_item().pk]) == 0
    tasks.extract(the_item().pk)
    assert facts(scope) == {"name": "Sam", "diet": "vegan"}


def test_recovery_sends_what_is_due_once_a_lease(scope: UserScope, at_once: None) -> None:
    record(scope, "one")
    record(scope, "two", conversation="other")
    ExtractionItem.objects.filter(key="other").update(due_at=timezone.now() + timedelta(hours=1))
    assert len(queue.due_items()) == 1
    assert queue.due_items() == []
    ExtractionItem.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert len(queue.due_items()) == 1


def test_nothing_is_sent_while_the_model_is_known_to_be_away(
    scope: UserScope, at_once: None
) -> None:
    record(scope, "My name is Sam")
    cache.set("memory.extraction.pause", 1, 60)
    assert tasks.recover_extractions() == 0
    assert tasks.extract(the_item().pk) is False
    assert (the_item().attempts, waiting()) == (0, ["My name is Sam"])


def test_a_conversation_that_cannot_be_stored_is_given_up_and_another_goes_on(
    scope: UserScope, settings: Any, at_once: None
) -> None:
    settings.MEMORY_MAX_FACTS = 1
    record(scope, "I'm vegan", "My name is Sam")
    assert tasks.extract(the_item().pk) is True
    assert (the_item().state, the_item().facts) == (State.DEAD, 0)
    assert "reached the limit" in the_item().error
    # not even the first one: all or nothing
    assert not Fact.objects.exists()
    other = make_scope()
    record(other, "My name is Eve")
    tasks.extract(ExtractionItem.objects.get(user_id=other.user_id, state=State.WAITING).pk)
    assert facts(other) == {"name": "Eve"}


def test_a_user_who_was_erased_while_a_worker_read_stays_erased(
    scope: UserScope, at_once: None
) -> None:
    record(scope, "My name is Sam")
    claim = queue.claim(the_item().pk)
    assert claim is not None
    erase_memory(scope=scope)
    assert worker.store_extraction(claim, *reading_of(claim)) is None
    assert not Fact.objects.exists()
    assert not ExtractionItem.objects.exists()


def reading_of(claim: queue.Claim) -> Any:
    return worker.extract_messages(claim.messages, known_keys=(), scope=claim.scope)


@pytest.fixture(autouse=True)
def _no_broker_needed(django_capture_on_commit_callbacks: Any) -> Iterator[None]:
    """Messages only hurry: what a test wants done it does itself."""
    with django_capture_on_commit_callbacks():
        yield
