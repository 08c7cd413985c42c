"""What processes of a site give back of their memory when they have no work."""

import pytest

from ragsite import idle_memory


def test_freed_memory_is_given_back_once_after_work(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([0.0, 0.1, 9.0, 9.1, 9.2, 19.0, 19.0])
    monkeypatch.setattr(idle_memory, "process_time", lambda: next(used))
    trims: list[int] = []
    idle = idle_memory.IdleMemory()
    idle._trim = lambda pad: trims.append(pad) or 1
    counts = []
    for _ in range(6):
        idle.give_back()
        counts.append(len(trims))
    #                 start, work, rest, rest, work, rest
    assert counts == [1, 1, 2, 2, 2, 3]
