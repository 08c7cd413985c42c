"""What is written before documents and queries."""

import pytest

from inference.local.model_folder import Prompts, read_prompts


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, Prompts()),
        ({"prompts": None, "default_prompt_name": None}, Prompts()),
        (
            {"prompts": {"query": "query: ", "passage": "passage: "}},
            Prompts("passage: ", "query: "),
        ),
        ({"prompts": {"query": "q", "document": None}}, Prompts("", "q")),
        ({"prompts": {"both": "b"}, "default_prompt_name": "both"}, Prompts("b", "b")),
        (
            {"prompts": {"both": "b", "query": "q"}, "default_prompt_name": "both"},
            Prompts("b", "q"),
        ),
        (
            {"prompts": {"both": "b", "document": ""}, "default_prompt_name": "both"},
            Prompts("", "b"),
        ),
    ],
)
def test_prompts_are_found_by_the_names_sentence_transformers_uses(config, expected):
    assert read_prompts(config) == expected


def test_an_instruction_fills_the_frame_the_model_was_taught():
    qwen = Prompts(query="Instruct: Given a web search query\nQuery:")
    assert qwen.for_query("Find the leaflet") == "Instruct: Find the leaflet\nQuery:"
    e5 = Prompts(query="Instruct: Given a web search query\nQuery: ")
    assert e5.for_query("Find the leaflet") == "Instruct: Find the leaflet\nQuery: "


def test_an_instruction_replaces_a_prompt_of_another_form():
    assert Prompts(query="query: ").for_query("Represent this: ") == "Represent this: "


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_an_instruction_the_models_own_prompt_stands(nothing):
    assert Prompts(query="query: ").for_query(nothing) == "query: "
