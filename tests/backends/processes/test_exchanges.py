"""Messages between processes, whose members are threads here, and whose store is a dictionary."""

import threading
from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from pullback.backends.processes import distributed
from pullback.backends.processes.distributed import Membership
from pullback.core.errors import ProcessLostError, ProcessMismatchError


class Store:
    """A store that counts what is asked of it."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.gone: set[int] = set()
        self.changed = threading.Condition()

    def put(self, key: str, value: bytes) -> None:
        with self.changed:
            assert key not in self.values
            self.asked["put"] += 1
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str, of: Collection[int]) -> bytes:
        with self.changed:
            self.asked["get"] += 1
            assert self.changed.wait_for(lambda: key in self.values or self.gone & {*of}, 20)
            if key not in self.values:
                raise ProcessLostError("get", dict.fromkeys(self.gone, "killed"))
            return self.values[key]

    def delete(self, key: str) -> None:
        with self.changed:
            self.asked["delete"] += 1
            self.values = {k: value for k, value in self.values.items() if not k.startswith(f"{key}/")}


class Processes:
    """The members of a group, each of which may speak on a thread of its own."""

    def __init__(self, count: int) -> None:
        self.store = Store()
        self.members = []
        for process in range(count):
            link: Any = SimpleNamespace(
                process=process, processes=count, lost=lambda what: ProcessLostError(what, {9: "killed"})
            )
            self.members.append(Membership(link, self.store, None, None, 1.0))  # type: ignore[arg-type]

    def exchange(self, said: dict[int, tuple[str, bytes]], of: tuple[int, ...] | None = None) -> dict[int, Any]:
        """What each process hears, or its error."""

        def heard(process: int) -> Any:
            try:
                return self.members[process].exchange(*said[process], of)
            except Exception as error:
                return error

        with ThreadPoolExecutor(len(said)) as pool:
            return dict(zip(said, pool.map(heard, said), strict=True))


@pytest.mark.parametrize("count", [2, 8, 16])
def test_requests_grow_with_the_number_of_processes(count: int) -> None:
    group = Processes(count)
    for step in range(3):
        said = {i: (f"step {step}", b"%d" % (i * step)) for i in range(count)}
        assert group.exchange(said) == {i: [b"%d" % (j * step) for j in range(count)] for i in range(count)}
    assert group.store.asked == {"put": 3 * count, "get": 3 * 2 * (count - 1), "delete": 3}
    assert len(group.store.values) == count, "the last step's alone are kept"


def test_messages_of_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "_PIECE", 5)
    messages = [b"", b"1 2\n[3]", bytes(range(256))]
    for _ in range(2):
        found = Processes(3).exchange({i: ("speaking\nin lines", message) for i, message in enumerate(messages)})
        assert found == dict.fromkeys(range(3), messages)


def test_barriers_of_some_beside_those_of_all() -> None:
    group = Processes(4)
    nothing = ("barrier", b"")
    assert group.exchange({3: nothing, 1: nothing}, of=(1, 3)) == {1: [b""] * 2, 3: [b""] * 2}
    assert group.exchange(dict.fromkeys(range(4), nothing)) == dict.fromkeys(range(4), [b""] * 4)
    assert group.exchange({2: nothing}, of=(2,)) == {2: [b""]}
    assert all(len(key) < 80 for key in group.store.values)


def test_all_learn_what_differs_and_go_on_together() -> None:
    group = Processes(3)
    found = group.exchange({0: ("a", b"x"), 1: ("b", b""), 2: ("a", b"")})
    assert all(isinstance(error, ProcessMismatchError) for error in found.values())
    assert [str(error).partition(":")[0] for error in found.values()] == [
        "process 0 is at a, but process 1 is at b",
        "process 1 is at b, but process 0 is at a; process 2 is at a",
        "process 2 is at a, but process 1 is at b",
    ]
    assert group.exchange(dict.fromkeys(range(3), ("c", b""))) == dict.fromkeys(range(3), [b""] * 3)


@pytest.mark.parametrize("lost", [0, 2])
def test_all_notice_a_loss(lost: int) -> None:
    group = Processes(3)
    group.store.gone = {lost}
    found = group.exchange({i: ("barrier", b"") for i in range(3) if i != lost})
    assert [str(error) for error in found.values()] == [str(ProcessLostError("barrier", {9: "killed"}))] * 2
