"""The language of a short question."""

import pytest

from documents.question_language import question_language


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
