"""Every door of search shows all options that there are, from one declaration."""

from argparse import ArgumentParser

import pytest
from django.core.management import load_command_class
from django.http import QueryDict

from common.options import flat_options, nested_options, option_fields
from graph.api.inputs import NeighborParameters
from graph.options import NeighborOptions, StepOptions, WalkOptions
from memory.api.serializers import MemorySearchSerializer
from memory.options import MemoryQuery, RecallOptions
from rag.api.chat import ChatSerializer
from rag.openai.chat_schema import OpenAIExtrasSerializer
from rag.tools import TOOLS
from search.api.inputs import (
    ExportParameters,
    FacetParameters,
    SearchParameters,
    SearchSerializer,
    SimilarParameters,
)
from search.api.stores import StoreSearchSerializer
from search.forms import SearchState
from search.query_options import (
    FacetRequest,
    RetrievalOptions,
    ScopeOptions,
    SearchQuery,
    SearchRequest,
    SimilarRequest,
)
from search.stores import StoreQuery

IN_JSON = nested_options(SearchQuery).keys()


def arguments(app: str, command: str) -> set[str]:
    parser = ArgumentParser()
    load_command_class(app, command).add_arguments(parser)
    return {action.dest for action in parser._actions}


def test_the_api_has_all() -> None:
    whole = nested_options(SearchRequest).keys()
    assert SearchSerializer().fields.keys() >= whole
    assert SearchParameters().fields.keys() >= whole
    assert ExportParameters().fields.keys() >= IN_JSON - {"expand"}


def test_the_command_has_all() -> None:
    assert arguments("search", "search") >= flat_options(SearchRequest).keys() - {"q"}


def test_the_page_has_all() -> None:
    names = option_fields(SearchState).keys()
    assert names >= flat_options(SearchQuery).keys() | option_fields(ScopeOptions).keys()


@pytest.mark.parametrize("given", [ChatSerializer, OpenAIExtrasSerializer])
def test_an_answer_has_those_of_retrieval(
    given: type[ChatSerializer | OpenAIExtrasSerializer],
) -> None:
    assert given().fields.keys() >= nested_options(RetrievalOptions).keys()


def test_other_doors_have_those_of_retrieval() -> None:
    nested, flat = nested_options(RetrievalOptions).keys(), flat_options(RetrievalOptions).keys()
    assert StoreSearchSerializer().fields.keys() >= nested - {"rerank"}
    assert TOOLS["hybrid_query"].parameters["properties"].keys() >= flat
    assert arguments("rag", "ask") >= flat


def test_facets_similar_passages_and_stores_have_all() -> None:
    assert FacetParameters().fields.keys() >= option_fields(FacetRequest).keys()
    assert SimilarParameters().fields.keys() >= option_fields(SimilarRequest).keys()
    assert StoreSearchSerializer().fields.keys() >= nested_options(StoreQuery).keys() - {"rerank"}


def test_memory_has_all_of_a_search() -> None:
    recall, whole = option_fields(RecallOptions).keys(), option_fields(MemoryQuery).keys()
    assert MemorySearchSerializer().fields.keys() >= whole
    assert TOOLS["memory_search"].parameters["properties"].keys() >= recall
    parser = ArgumentParser()
    load_command_class("memory", "memory").add_arguments(parser)
    (actions,) = (each.choices for each in parser._actions if each.dest == "action")
    assert actions is not None
    assert {each.dest for each in actions["search"]._actions} >= whole


def test_walks_through_the_graph_have_all() -> None:
    assert NeighborParameters().fields.keys() >= option_fields(NeighborOptions).keys()
    assert TOOLS["graph_neighbors"].parameters["properties"].keys() >= {
        "rel",
        *option_fields(StepOptions),
    }
    assert TOOLS["graph_path"].parameters["properties"].keys() >= option_fields(WalkOptions).keys()


def test_the_address_of_the_page_says_what_it_read() -> None:
    address = (
        "q=tea&mode=vector&sort=newest&fusion=rrf&rrf_k=9&depth=20&alpha=0.7&beta=0.2&rerank=0"
        "&rerank_depth=5&min_similarity=0.5&diversify=1&ef_search=50&probes=3&expand=none"
        "&versions=all&collection=a&collection=b&type=text%2Fplain&filter=year%3E2020&group=0&explain=1&page=2"
    )
    state = SearchState.read(QueryDict(address))
    assert state.query_string() == address
    assert state.unknown == ()
    assert {name for name, _value in state.hidden_fields()} >= {"alpha", "collection", "explain"}
