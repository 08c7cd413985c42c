"""Russian and Chinese paragraphs, put into a collection that nobody told of their language, are
found by what they mean: the bundled model for many languages, chosen by the texts."""

from math import log2
from typing import Any

import pytest

from accounts.models import Membership
from documents.ingestion.sources import text_source
from documents.services import create_collection, ingest_inline
from search.query_options import site_scope
from search.services import search
from search.tests.test_question_languages import MULTILINGUAL
from tests.kit import hashing, use_models

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("media_root"),
    pytest.mark.model,
]

#: Question → the paragraph that answers it, in other words.
RUSSIAN = {
    "Сколько стоит проезд для школьников?": "Дети до шестнадцати лет платят за билет на паром"
    " половину. Взрослый отдаёт двести рублей в одну сторону, собаку можно взять даром.",
    "Когда нельзя выходить в море?": "При ветре сильнее пятнадцати метров в секунду суда остаются у"
    " причала. Решение принимает капитан, и диспетчер сразу сообщает о нём пассажирам.",
    "Чем кормят тюленей?": "В питомнике животные получают дважды в день свежую сельдь и мойву."
    " Больным добавляют витамины, которые прячут внутрь рыбы.",
    "Кто отвечает за починку двигателей?": "Моторы раз в полгода разбирает и проверяет мастерская"
    " Ивановых на северном берегу. Она же держит запас деталей и меняет масло.",
    "Как вернуть деньги за отменённую поездку?": "Если рейс не состоялся, сумма"
    " возвращается на карту"
    " в течение десяти дней. Для этого нужно заполнить заявление в кассе или на сайте.",
    "Где можно переночевать туристу?": "Рядом с вокзалом работает небольшая гостиница на двенадцать"
    " номеров. Летом у озера открыт кемпинг, где сдают палатки и спальные мешки.",
    "Что делать при пожаре?": "Заметив дым, нажмите красную кнопку на стене и покиньте помещение по"
    " ближайшей лестнице. Лифтом пользоваться запрещено, сбор людей во дворе.",
    "Сколько дней отпуска у сотрудника?": "Каждому работнику положено двадцать восемь календарных"
    " дней отдыха в году. Неиспользованное переносится на следующий год до конца марта.",
    "Почему закрыт музей?": "Здание с картинами девятнадцатого века стоит в лесах: рабочие меняют"
    " крышу, которая протекала. Посетителей снова ждут весной.",
    "Как вырастить помидоры дома?": "Семена сеют в феврале в ящики на солнечном подоконнике и"
    " поливают тёплой водой. В мае окрепшую рассаду высаживают в теплицу.",
}
CHINESE = {
    "学生坐船要多少钱？": "十六岁以下的孩子乘渡轮只付一半的票价。"
    "成人单程二十元，宠物可以免费携带。",
    "什么天气不能出海？": "风速超过每秒十五米时，所有船只都留在码头。"
    "由船长作出决定，调度员立即通知旅客。",
    "海豹吃什么？": "饲养员每天两次给这些动物喂新鲜的鲱鱼。"
    "生病的个体还会得到藏在鱼肚子里的维生素。",
    "发动机由谁修理？": "北岸的王氏车间每半年拆开检查一次马达。他们还备有零件，并负责更换机油。",
    "行程取消了怎么退款？": "如果航班没有成行，钱会在十天之内退回银行卡。"
    "需要在售票处或网站上填写一张申请表。",
    "游客可以在哪里过夜？": "火车站旁边有一家只有十二个房间的小旅馆。"
    "夏天湖边开放露营地，可以租帐篷和睡袋。",
    "着火了应该怎么办？": "发现烟雾时，请按下墙上的红色按钮，并从最近的楼梯离开大楼。"
    "禁止使用电梯，人员在院子里集合。",
    "员工每年有几天假期？": "每位职工一年可以休息二十八天。没有用完的天数可以保留到第二年三月底。",
    "博物馆为什么关门？": "收藏十九世纪绘画的那座建筑搭满了脚手架，工人正在更换漏水的屋顶。"
    "明年春天重新接待参观者。",
    "在家怎么种西红柿？": "二月把种子播在向阳窗台的盒子里，用温水浇灌。"
    "五月再把长壮的幼苗移到温室。",
}
LEAST_NDCG = 0.9


@pytest.mark.parametrize("pairs", [RUSSIAN, CHINESE], ids=["ru", "zh"])
def test_they_are_found_by_meaning(alice: Membership, settings: Any, pairs: dict[str, str]) -> None:
    use_models(
        settings, embedder={"default": hashing(LANGUAGES=["en"]), "many": MULTILINGUAL}, reranker={}
    )
    settings.SHARED_MODELS = False
    collection = create_collection(workspace=alice.workspace, name="Harbour")
    keys = {question: f"d{number}" for number, question in enumerate(pairs)}
    sources = [text_source(keys[question], text) for question, text in pairs.items()]
    ingest_inline(collection=collection, sources=sources)
    scope = site_scope(workspace=alice.workspace)
    gains: list[float] = []
    for question, key in keys.items():
        hits = search(question, scope=scope, mode="vector", k=10).hits
        found = [hit.document_key for hit in hits]
        gains.append(1 / log2(2 + found.index(key)) if key in found else 0.0)
    assert sum(gains) / len(gains) >= LEAST_NDCG, gains
