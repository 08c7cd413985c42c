"""PDF: Arabic, Persian and Hebrew come out in the order they are read, however they are drawn."""

import pytest

from reading.parsers import parse
from reading.parsers.pdf_bidi import logical_line, reading_order
from reading.tests.factories_pdf import right_to_left_pdf

#: What is written, and what is seen of it from right to left.
LINES = {
    "عقد الإيجار يبدأ في 1 مايو 2026": "عقد الإيجار يبدأ في 1 مايو 6202",
    "دفع 25% من المبلغ (شامل الضريبة).": "دفع 52% من المبلغ )شامل الضريبة(.",
    "استخدمنا مكتبة Django في Python 3.11 جديدة": "استخدمنا مكتبة ognajD في 11.3 nohtyP جديدة",
    "דמי השכירות 4500 ש״ח.": "דמי השכירות 0054 ש״ח.",
    "שָׁלוֹם עֲלֵיכֶם": "שָׁלוֹם עֲלֵיכֶם",
    "لطفاً به نشانی ۱۲ بیایید": "لطفاً به نشانی ۲۱ بیایید",
}


@pytest.mark.parametrize("is_logical", [True, False])
@pytest.mark.parametrize("written", LINES)
def test_lines_are_read_from_right_to_left_in_either_order_of_drawing(
    written: str, is_logical: bool
) -> None:
    data = right_to_left_pdf([LINES[written]], is_logical=is_logical)
    assert parse(data, name="a.pdf").text == written


@pytest.mark.parametrize("is_logical", [True, False])
def test_ligatures_that_are_characters_of_their_own_keep_the_order_of_their_letters(
    is_logical: bool,
) -> None:
    data = right_to_left_pdf(["ا\ufccbطوط في المدينة"], is_logical=is_logical)
    assert parse(data, name="a.pdf").text == "الخطوط في المدينة"


def test_lines_of_a_paragraph_follow_one_another_from_the_right_edge() -> None:
    rows = ["חוזה השכירות מתחיל היום ומסתיים אחרי שנים רבות מאוד ועוד שבועות אחדים", "ועוד יום"]
    assert parse(right_to_left_pdf(rows), name="a.pdf").text.replace("\n", " ") == " ".join(rows)


def test_the_language_that_a_program_states_for_any_text_is_not_believed() -> None:
    assert parse(right_to_left_pdf(["עברית"]), name="a.pdf").language == ""


def test_columns_are_read_from_the_right() -> None:
    right = ["זאת השורה הראשונה של הטור הימני שלנו", "וזאת השורה השנייה של הטור הימני בדף"]
    left = ["כאן מתחיל הטור השמאלי והוא ארוך מאוד", "וכאן הוא נגמר אחרי שורות אחדות בלבד"]
    rows = [f"{one:<44}{two}" for one, two in zip(right * 4, left * 4, strict=True)]
    text = parse(right_to_left_pdf(rows), name="a.pdf").text
    assert text.rindex("הטור הימני") < text.index("הטור השמאלי")


def test_a_line_of_latin_letters_keeps_its_order_beside_hebrew() -> None:
    words = ["The", "file", "(ץבוק)", "is", "here"]  # as they are seen, but for each word
    words[2] = reading_order(words[2], is_rtl=False)
    assert logical_line(words, is_rtl=False) == "The file (קובץ) is here"


@pytest.mark.parametrize("text", ["אבג 12 דה", "abc אבג", "ב־1 במאי"])
def test_reading_order_is_its_own_inverse(text: str) -> None:
    for is_rtl in (True, False):
        assert reading_order(reading_order(text, is_rtl=is_rtl), is_rtl=is_rtl) == text
