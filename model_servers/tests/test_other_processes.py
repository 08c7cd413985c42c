"""What one process changes is used by another that goes on running."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from inference.tests.stub_server import StubServer, chat_reply
from model_servers import services
from model_servers.options import ConnectionOptions
from model_servers.tests.servers import MODEL
from tests.plugin import database_url_of_tests, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly]

#: Says for each line that it reads who answers, and with which key.
ASK = """
import sys
import django
django.setup()
from inference.chat_models import chat_model
from inference.interfaces import ChatMessage
for line in sys.stdin:
    model = chat_model()
    if model:
        model.complete([ChatMessage("user", "Who are you?")])
    print(model.model_name if model else "extractive", flush=True)
"""

Ask = Callable[[], str]


@pytest.fixture
def elsewhere() -> Iterator[Ask]:
    """Asks another process for the name of the model that answers there."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url_of_tests(),
        "DJANGO_SETTINGS_MODULE": "ragsite.settings",
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", ASK]
    process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
    asked, told = process.stdin, process.stdout
    assert asked
    assert told

    def ask() -> str:
        print(file=asked, flush=True)
        return told.readline().strip()

    yield ask
    process.kill()
    process.communicate()


def test_a_model_its_key_and_its_end_reach_another_process(
    elsewhere: Ask, server: StubServer
) -> None:
    server.always(lambda payload: chat_reply("A model."))
    given = {"kind": "openai", "address": server.url, "model": MODEL, "key": "sk-first"}
    assert elsewhere() == "extractive"
    connection = services.connect_model(options=ConnectionOptions.from_text(given), is_default=True)
    wait_until(lambda: elsewhere() == MODEL, what="the model")
    assert server.requests[-1].headers["authorization"] == "Bearer sk-first"

    changed = ConnectionOptions.from_text({**given, "key": "sk-second"})
    services.change_connection(connection=connection, options=changed)

    def sends_the_new_key() -> bool:
        assert elsewhere() == MODEL
        return server.requests[-1].headers["authorization"] == "Bearer sk-second"

    wait_until(sends_the_new_key, what="the changed key")
    services.remove_connection(connection=connection)
    wait_until(lambda: elsewhere() == "extractive", what="the end of the default")
