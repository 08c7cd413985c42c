"""What models answer to routers, evaluators and planners is read, whatever its form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.replies import UnreadableReply
from rag.pipelines import replies

ROUTES = ("documents", "chat", "code-review", "review")


@pytest.mark.parametrize(
    ("reply", "route"),
    [
        ("documents", "documents"),
        (" **Documents**.\n", "documents"),
        ('{"route": "chat"}', "chat"),
        ("I would choose “code-review” here.", "code-review"),
        ("review", "review"),
    ],
)
def test_a_route_is_found_in_a_reply(reply: str, route: str) -> None:
    assert replies.pick_route(reply, ROUTES) == route


@pytest.mark.parametrize("reply", ["the weather", "chat or documents", "", "chatty"])
def test_a_reply_that_names_no_route_or_several_is_none(reply: str) -> None:
    assert replies.pick_route(reply, ROUTES) not in ROUTES


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 0.25, "reason": "short"}', 0.25),
        ('First {"score": 0} then\n```json\n{"score": "0.5"}\n```', 0.5),
        ("Score: 1", 1.0),
    ],
)
def test_a_score_is_found(reply: str, score: float) -> None:
    assert replies.parse_score(reply)[0] == score


@pytest.mark.parametrize("reply", ["good", '{"score": 7}', '{"score": true}', '{"score": null}'])
def test_what_holds_no_score_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="score"):
        replies.parse_score(reply)


def test_plans_are_read_and_bounded() -> None:
    assert replies.parse_tasks('["a", "b", "c"]', most=2) == ["a", "b"]
    assert replies.parse_tasks('{"tasks": [{"task": "a"}]}', most=5) == ["a"]
    with pytest.raises(UnreadableReply):
        replies.parse_tasks("1. a", most=5)
    with pytest.raises(UnreadableReply):
        replies.parse_tasks('["a", ""]', most=5)
    steps = '[{"worker": "Finder", "task": "x"}]'
    assert replies.parse_steps(steps, workers=["finder"], most=5) == [("finder", "x")]
    with pytest.raises(UnreadableReply, match="finder"):
        replies.parse_steps('[{"worker": "cook", "task": "x"}]', workers=["finder"], most=5)


@given(st.text(max_size=80))
def test_any_reply_is_read_or_unreadable(reply: str) -> None:
    assert isinstance(replies.pick_route(reply, ROUTES), str)
    try:
        score, _ = replies.parse_score(reply)
    except UnreadableReply:
        return
    assert 0 <= score <= 1
