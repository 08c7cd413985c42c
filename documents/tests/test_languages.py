"""Telling the language of a text, and of a short question."""

from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from documents import languages
from documents.languages import CONFIGURATIONS, DETECTED_ONLY, _identifier, detect_language
from documents.question_language import question_language

SENTENCES = {
    "zh": "糖尿病是一种以血糖升高为特征的慢性代谢性疾病。",
    "ja": "京都には千年以上の歴史を持つ寺院が数多く残っています。",
    "ko": "서울은 한강을 끼고 있는 대한민국의 수도이며 가장 큰 도시이다.",
    "th": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
    "lo": "ວຽງຈັນແມ່ນນະຄອນຫຼວງຂອງປະເທດລາວ",
    "km": "ភ្នំពេញគឺជារាជធានី និងជាទីក្រុងធំជាងគេនៃប្រទេសកម្ពុជា",
    "my": "နေပြည်တော်သည် မြန်မာနိုင်ငံ၏ မြို့တော်ဖြစ်ပြီး ရန်ကုန်မြို့သည် အကြီးဆုံးမြို့ဖြစ်သည်",
    "el": "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.",
    "ka": "თბილისი საქართველოს დედაქალაქია.",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_is_enough_where_the_script_tells(code: str) -> None:
    assert detect_language(SENTENCES[code], default="en") == code


@pytest.mark.parametrize(
    "text",
    ["", "东京大学", "Die Sitzung ist um neun.", "東京 and Ελλάδα are names.", "12 345 678 90"],
)
def test_what_says_too_little_is_left_to_the_default(text: str) -> None:
    assert detect_language(text, default="sv") == "sv"


def test_names_in_another_script_do_not_change_the_language_of_a_text() -> None:
    english = "The temples of Kyoto (京都) and Nara (奈良) draw millions of visitors every year, "
    assert detect_language(english + "and most of them come in spring.") == "en"
    chinese = "日本的车站名「のぞみ」是新干线列车的名称，连接东京和大阪以及博多。" * 3
    assert detect_language(chinese) == "zh"


def test_longer_texts_are_told_by_what_they_say() -> None:
    german = "Die Häuser am Fluss wurden nach dem Hochwasser von ihren Besitzern neu gebaut."
    assert detect_language(german, default="en") == "de"


@cache
def library() -> Any:
    """py3langid's own identifier."""
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_modelpath(MODEL_DIR / MODEL_FILE, norm_probs=True)
    identifier.set_languages(sorted(set(identifier.labels) & {*CONFIGURATIONS, *DETECTED_ONLY}))
    return identifier


@settings(deadline=None)
@given(st.text(st.sampled_from("abcdeéinorst ĳ\nÜß東ыиκα.,-01"), max_size=300))
@example("A")
@example("The committee meets at nine, and die Sitzung ist um zwölf. " * 60)
def test_all_places_at_once_give_what_the_library_gives_byte_by_byte(text: str) -> None:
    language, probability = _identifier().classify(text)
    expected = dict(library().rank(text))
    assert probability == pytest.approx(max(expected.values()), abs=1e-5)
    assert expected[language] == pytest.approx(max(expected.values()), abs=1e-5)


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "where is the key?"),
        ("en", "who pays the taxi"),
        ("de", "wo liegt der Schlüssel?"),
        ("de", "Taxi nach zehn Uhr, wer zahlt das"),
        ("es", "¿Dónde está la llave?"),
        ("es", "quien paga el taxi"),
        ("fr", "où est la clé ?"),
        ("it", "chi paga il taxi per gli ospiti"),
        ("pt", "quem paga o táxi das visitas"),
        ("nl", "wie betaalt de taxi voor gasten"),
        ("ru", "Кто платит за такси?"),
        ("uk", "Хто платить за таксі?"),
        ("bg", "Къде е ключът?"),
        ("zh", "谁付出租车费？"),
        ("ja", "鍵はどこ？"),
        ("ar", "أين المفتاح؟"),
        ("hi", "चाबी कहाँ है?"),
        ("en", "where is the 東京 office?"),
        ("", "taxi"),
        ("", "K-17"),
    ],
)
def test_short_questions_have_a_language_too(language: str, question: str) -> None:
    assert question_language(question) == language
    assert question_language(question, default="xx") == (language or "xx")


def test_the_detector_is_forgotten_when_it_was_idle_and_loaded_again_for_a_text() -> None:
    text = "The committee meets at nine in the large hall, and everybody may come to listen."
    assert detect_language(text) == "en"
    assert languages.release_idle(3600.0) is False
    assert languages.release_idle(0.0) is True
    assert languages.release_idle(0.0) is False
    assert detect_language(text) == "en"
