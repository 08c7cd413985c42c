"""An agent of LangGraph that looks things up in its nodes."""

import asyncio
from typing import Any, Literal, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from rag.document import Document
from rag.retriever import Retriever
from rag.tests.mcp_world import VACATION, World

pytestmark = pytest.mark.django_db


class State(TypedDict, total=False):
    """What the nodes hand on."""

    question: str
    tried: int
    documents: list[Document]
    answer: str


def agent(retriever: Retriever) -> Any:
    """Looks the question up; where no word of it stands anywhere it tries a simpler one, once; and
    quotes what it found."""

    async def retrieve(state: State) -> State:
        found = await retriever.search(state["question"], top_k=2, mode="lexical")
        return {"documents": found, "tried": state.get("tried", 0) + 1}

    async def simplify(state: State) -> State:
        return {"question": state["question"].rsplit(maxsplit=1)[-1]}

    def answer(state: State) -> State:
        quoted = [f"“{found.content}” ({found.id})" for found in state["documents"][:1]]
        return {"answer": " ".join(quoted) or "not in the sources"}

    def judge(state: State) -> Literal["simplify", "answer"]:
        return "answer" if state["documents"] or state["tried"] > 1 else "simplify"

    graph = StateGraph(State)
    for node in (retrieve, simplify, answer):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges("retrieve", judge)
    graph.add_edge("simplify", "retrieve")
    graph.add_edge("answer", END)
    return graph.compile()


def test_an_agent_finds_tries_again_and_gives_up(world: World) -> None:
    graph = agent(Retriever(world.alice.user, collections=["handbook"]))

    async def ask() -> list[State]:
        questions = ["carry over unused", '"my grandmother" vacation', "unicorns dragons"]
        return await asyncio.gather(
            *(graph.ainvoke({"question": question}) for question in questions * 5)
        )

    for found, simplified, nothing in zip(*[iter(asyncio.run(ask()))] * 3, strict=True):
        assert found["answer"] == f"“{VACATION}” (vacation.md)"
        assert (found["tried"], simplified["tried"]) == (1, 2)
        assert simplified["answer"] == found["answer"]
        assert (nothing["answer"], nothing["tried"]) == ("not in the sources", 2)


def test_it_sees_what_its_user_sees(world: World) -> None:
    graph = agent(Retriever(world.charlie.user))
    state = asyncio.run(graph.ainvoke({"question": "carry over unused vacation"}))
    assert VACATION not in state["answer"]
