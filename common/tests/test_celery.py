"""Tasks that wait for a broker which is away."""

from typing import Any

import pytest
from celery import current_app

from common.celery import app, send_or_wait


@app.task(name="tests.counted", ignore_result=True)
def counted(number: int) -> int:
    return number


@pytest.mark.parametrize("task", [counted, "tests.counted"], ids=["task", "name"])
def test_a_task_waits_while_the_broker_is_away(
    task: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(current_app.conf, "broker_url", "redis://127.0.0.1:1/0")
        broken.setattr(current_app, "_pool", None)
        broken.setattr(current_app.amqp, "_producer_pool", None)
        assert not send_or_wait(task, 1)
    assert "the broker does not answer, tests.counted waits for it" in caplog.text
