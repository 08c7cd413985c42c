"""What is said, with its time and speaker, however the captions were made."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import Page, ParsedDocument, ParseError, parse


def read(text: str, name: str = "talk.vtt") -> ParsedDocument:
    return parse(text.encode(), name=name)


def test_cues_become_paragraphs_with_time_and_speaker_and_without_tags() -> None:
    document = read(
        "WEBVTT - Board meeting\nLanguage: en-GB\n\nNOTE not said\n\nSTYLE\n::cue {}\n\n"
        "1\n00:01.000 --> 00:03.000 align:start\n<v.loud Ada>The <b>budget</b> is\n\n"
        "00:03.000 --> 00:05.000\n<v.loud Ada>40,000 euros &amp; more.\n\n"
        "01:02:03.000 --> 01:02:05.500\n<v Bob>We meet in May.\n"
    )
    assert document.text == (
        "[00:01] Ada: The budget is 40,000 euros & more.\n\n[1:02:03] Bob: We meet in May."
    )
    assert document.pages == (Page(0, 1), Page(49, 3723))
    assert (document.title, document.language) == ("Board meeting", "en")
    assert document.metadata == {"duration": "1:02:05", "speakers": ["Ada", "Bob"]}


def test_lines_that_automatic_captions_repeat_come_once() -> None:
    cues = ["so today we", "so today we\ntalk about bees", "talk about bees\nand honey"]
    srt = "".join(
        f"{n}\n00:00:0{n},000 --> 00:00:0{n + 1},000\n{{\\an8}}{cue}\n\n"
        for n, cue in enumerate(cues, start=1)
    )
    assert read(srt, "talk.srt").text == "[00:01] so today we talk about bees and honey"
    growing = "00:01.000 --> 00:02.000\nso\n\n00:02.000 --> 00:03.000\nso today\n"
    assert read(f"WEBVTT\n\n{growing}").text == "[00:01] so today"


def test_words_that_are_said_again_later_are_kept() -> None:
    text = "00:01.000 --> 00:02.000\nNo.\n\n00:09.000 --> 00:10.000\nNo.\n"
    assert read(text).text == "[00:01] No.\n\n[00:09] No."


def test_lines_with_broken_times_are_named() -> None:
    text = "00:01.000 --> 00:02.000\nHello.\n\n00:xx --> 00:04.000\nlost\n"
    assert read(text).metadata["broken_lines"] == [4]
    with pytest.raises(ParseError, match="the first in line 2") as caught:
        read("1\n00:99:01,000 --> 00:00:02,000\nlost\n", "talk.srt")
    assert caught.value.code == "malformed"
    with pytest.raises(ParseError) as caught:
        read("WEBVTT\n\nNOTE nothing\n")
    assert caught.value.code == "no_text"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["00:01.000 --> 00:02.000", "\n", "<v A>", "x.", "--> ", "{\\", "7"]))
)
def test_nothing_but_a_parse_error_is_raised(parts: list[str]) -> None:
    try:
        document = read("\n".join(parts), "talk.srt")
    except ParseError:
        return
    assert document.text.startswith("[00:0")
