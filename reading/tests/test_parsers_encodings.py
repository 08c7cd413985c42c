"""Encodings of texts: found by evidence, or refused."""

import pytest

from reading.parsers import ParseError, decode_text
from reading.parsers.normalise import decode_as

#: Two sentences, as letters and tables have them, and encodings they come in.
WRITTEN = {
    "Pani Żółkiewska podpisała umowę najmu w środę, a klucze są u dozorcy. Proszę zapłacić za wodę "
    "do końca miesiąca.": ("iso-8859-2", "cp1250", "cp852", "gb18030"),
    "Nájemník podepsal smlouvu ve středu a klíče od bytu jsou u správce. Příliš žluťoučký kůň úpěl "
    "ďábelské ódy.": ("iso-8859-2", "cp1250"),
    "Kiracı Işık Şahin sözleşmeyi çarşamba günü imzaladı, anahtarlar kapıcıda. Lütfen su ücretini "
    "ay sonuna kadar ödeyiniz.": ("iso-8859-9", "cp1254"),
    "Арендатор подписал договор в среду, а ключи от квартиры находятся у управляющего.": (
        "koi8-r", "cp1251", "iso-8859-5", "cp866", "utf-16-le",
    ),
    "Ο ενοικιαστής υπέγραψε το συμβόλαιο την Τετάρτη.": ("iso-8859-7", "cp1253"),
    "השוכר חתם על החוזה ביום רביעי והמפתחות נמצאים אצל מנהל הבניין.": ("iso-8859-8", "cp1255"),
    "وقع المستأجر على العقد يوم الأربعاء ومفاتيح الشقة عند حارس المبنى.": ("iso-8859-6", "cp1256"),
    "倉庫の鍵は管理人室に置いてあります。\n佐藤太郎さんは名古屋に住んでいます。": (
        "cp932", "euc-jp", "iso-2022-jp", "utf-16-be",
    ),
    "仓库的钥匙放在管理员办公室。请您在下周三签署合同。": ("gbk", "gb18030", "hz"),
    "倉庫的鑰匙放在管理員辦公室。請您在下週三簽署合約。": ("big5",),
    "창고 열쇠는 관리인 사무실에 있습니다. 다음 주 수요일에 서명하세요.": ("euc-kr", "iso-2022-kr"),
    "Der Schlüssel für die große Tür hängt im Büro. Rückfragen beantwortet Frau Müller.": (
        "cp1252", "iso-8859-15", "cp850", "mac-roman",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "encoding"), [(text, each) for text, all_ in WRITTEN.items() for each in all_]
)
def test_encodings_are_found_by_evidence(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == text


def test_a_few_foreign_words_in_a_table_tell_its_encoding() -> None:
    rows = [f"A-{number:04};Part;1.50;pcs;{number};Northwind Ltd;" for number in range(40)]
    rows[3] = rows[3].replace("Part", "螺丝刀")
    rows[9] = rows[9].replace("Part", "电缆")
    rows[20] = rows[20].replace("Part", "灯泡")
    text = "\n".join(rows)
    assert decode_text(text.encode("gbk")) == text


@pytest.mark.parametrize("text", ["un été " * 100, "naïve;größe\n1;2\n", "Grüße aus Köln. " * 50])
def test_few_words_of_evidence_are_western(text: str) -> None:
    assert decode_text(text.encode("cp1252")) == text


def test_a_stray_byte_does_not_make_utf8_another_encoding() -> None:
    data = "# Überblick\n\nGröße und Übergabe: ".encode() + "Gerät".encode("cp1252")
    assert decode_text(data) == "# Überblick\n\nGröße und Übergabe: Gerät"


def test_text_in_no_known_encoding_is_refused() -> None:
    with pytest.raises(ParseError, match="UTF-8") as caught:
        decode_text(bytes(range(0x80, 0x100)) * 3)
    assert caught.value.code == "malformed"


@pytest.mark.parametrize(
    ("label", "data"),
    [("gb2312", "镕基".encode("gbk")), ("shift_jis", "①".encode("cp932")),
     ("iso-8859-8-i", "שלום".encode("iso-8859-8")), ("tis-620", "กุญแจ".encode("tis-620"))],
)  # fmt: skip
def test_declared_names_mean_the_larger_sets_of_the_vendors(label: str, data: bytes) -> None:
    larger = {"gb2312": "gbk", "shift_jis": "cp932", "iso-8859-8-i": "iso-8859-8"}
    assert decode_as(data, label) == data.decode(larger.get(label, label))
