"""Processes that cannot compute together, and arguments that make no sense."""

from __future__ import annotations

import contextlib
import json
import pickle
import socket
import threading
import time

import pytest

import pullback
from pullback import __main__ as command
from pullback.backends.processes.links import Coordinator, Link, _hello, _send, address
from pullback.core.errors import (
    ArgumentError,
    DistributedError,
    DistributedTimeoutError,
    ExecutionError,
    ProcessLostError,
    UnsupportedArgumentError,
)
from tests.backends.processes.meddling import Proxy


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Together:
    """Process 0, and others, all of them in this process."""

    def __init__(self, port, processes, timeout=20.0, heartbeat=20.0, token=""):
        self.token = token
        self.port, self.processes, self.timeout, self.heartbeat = port, processes, timeout, heartbeat
        self.coordinator = Coordinator("127.0.0.1", port, processes, timeout, heartbeat, token)
        self.links = {}
        self.errors = {}

    def join(self, process, processes=None, heartbeat=None, port=None):
        def work():
            try:
                count = processes or self.processes
                beat = heartbeat or self.heartbeat
                self.links[process] = Link(
                    "127.0.0.1", port or self.port, process, count, self.timeout, beat, self.token
                )
            except Exception as error:
                self.errors.setdefault(process, []).append(error)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def join_all(self):
        threads = [self.join(i) for i in range(self.processes)]
        for thread in threads:
            thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for link in self.links.values():
            link.stop(client_ended=True)
        self.coordinator.stop()


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_number_that_is_taken_and_another_count(port):
    with Together(port, 3) as them:
        first = them.join(1)
        until(lambda: 1 in them.coordinator.members)
        them.join(1).join()
        assert "process_id 1 is taken by process" in str(them.errors[1][0])
        them.join(2, processes=4).join()
        assert "num_processes is 4 here and 3 in process 0" in str(them.errors[2][0])
        for thread in (them.join(0), them.join(2), first):
            thread.join()
        assert sorted(them.links) == [0, 1, 2]
        them.join(1).join()
        assert "process_id 1 is taken" in str(them.errors[1][1])


def test_a_process_that_does_not_come(port):
    with Together(port, 3, timeout=0.3) as them:
        threads = [them.join(0), them.join(2)]
        for thread in threads:
            thread.join()
        for i in (0, 2):
            (error,) = them.errors[i]
            assert isinstance(error, DistributedTimeoutError)
            assert f"process {i} waited 0.3 seconds for process 1, of num_processes=3" in str(error)


def test_a_process_that_comes_when_the_time_is_over(port):
    with Together(port, 2, timeout=0.2) as them:
        until(lambda: them.coordinator._late)
        them.join(0).join()
        assert "process 0 waited 0.2 seconds for process 1, of num_processes=2" in str(them.errors[0][0])


def test_process_0_was_stopped_and_goes_on(port):
    """A process that had given it up says so: process 0 and the others know that process 0 was lost."""
    with Together(port, 3) as them:
        them.join_all()
        lost = _send(them.links[2].writer, lost="it sent no heartbeat")
        them.links[2].loop.do(lost)
        until(lambda: them.links[0].gone and them.links[1].gone)
        assert them.links[0].gone == them.links[1].gone == {0: "it sent no heartbeat"}


def test_one_that_comes_while_others_wait_and_goes(port):
    with Together(port, 2) as them:
        with socket.create_connection(("127.0.0.1", port)) as other:
            other.sendall(line(_hello("", "member", process=1, processes=2)))
            until(lambda: 1 in them.coordinator.members)
        until(lambda: 1 not in them.coordinator.members)
        them.join_all()  # its number is free again
        assert sorted(them.links) == [0, 1]


def line(message):
    return json.dumps(message).encode() + b"\n"


def answer(port, said):
    """What process 0 answers to bytes: all of it, until it ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as other:
        other.sendall(said)
        other.shutdown(socket.SHUT_WR)
        return other.makefile("rb").read()


MALFORMED = [
    b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b"{]\n", b"null\n", b"\xff\xfe\n", b"\x00" * 100_000, b"[" * 60_000 + b"\n",
    b'{"a": "' + b"x" * 1_000_000 + b'"}\n',
]  # fmt: skip


@pytest.mark.parametrize("said", MALFORMED, ids=range(len(MALFORMED)))
def test_process_0_is_spoken_to_by_something_else(port, said, caplog):
    with Together(port, 1) as them:
        assert answer(port, said) == b'{"refused": "it sent something else than a message of Pullback"}\n'
        assert answer(port, b"") == b""
        them.join_all()
        assert sorted(them.links) == [0]
    assert caplog.records == []  # asyncio logs the errors of its tasks


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"process": -3}, "process_id must be an integer from 0 to 1, got -3"),
        ({"process": 2}, "got 2"),
        ({"process": None}, "got None"),
        ({"process": True}, "got True"),
        ({"process": "1"}, "got '1'"),
        ({"process": {}}, "got {}"),
        ({"processes": None}, "num_processes is None here and 2 in process 0"),
        ({"pullback": 1}, "another version"),
        ({"proof": "0"}, "it has another token than process 0"),
        ({"proof": None}, "token"),
        ({"proof": "\ud800", "nonce": "\udfff"}, "token"),
        ({"nonce": 7}, "token"),
        ({"role": "relay"}, "token"),
        ({"role": None}, "token"),
    ],
)
def test_members_that_are_refused(port, changed, why, caplog):
    with Together(port, 2) as them:
        hello = {**_hello("", "member", process=1, processes=2), **changed}
        (refused,) = answer(port, line(hello)).splitlines()
        assert why in json.loads(refused)["refused"]
        them.join_all()
        assert sorted(them.links) == [0, 1]
    assert caplog.records == []


def test_tokens(port):
    """Neither a process nor a relay of another job takes part, whether it has another token or none."""
    with Together(port, 2, token="ours") as them:
        for other in ("theirs", ""):
            with pytest.raises(DistributedError, match="another job on the same port"):
                Link("127.0.0.1", port, 1, 2, 5.0, 5.0, other)
            assert b"another job" in answer(port, line(_hello(other, "relay")))
        hello = _hello("ours", "member", process=1, processes=2)
        assert "ours" not in str(hello)
        assert b"another job" in answer(port, line({**hello, "role": "relay"}))  # a proof is of one role only
        them.join_all()
        assert sorted(them.links) == [0, 1]


def test_something_that_does_not_know_the_token_listens():
    with socket.create_server(("127.0.0.1", 0)) as other:

        def say_complete():
            connection, _ = other.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b'{"complete": true}\n')
                connection.recv(1000)

        threading.Thread(target=say_complete).start()
        with pytest.raises(DistributedError, match="the process there has another token than this job"):
            Link("127.0.0.1", other.getsockname()[1], 1, 2, 5.0, 5.0, "ours")


def test_a_second_process_0(port):
    with (
        Together(port, 1),
        pytest.raises(DistributedError, match=r"cannot listen at 127\.0\.0\.1:\d+: Address already in use"),
    ):
        Coordinator("127.0.0.1", port, 1, 5.0, 5.0)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400\r\n\r\n", b"", b"[]\n", b"{]\n"])
def test_something_else_listens(said):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def refuse():
            connection, _ = other.accept()
            connection.recv(1000)
            connection.sendall(said)
            connection.close()

        threading.Thread(target=refuse).start()
        with pytest.raises(DistributedError, match="another program listens there"):
            Link("127.0.0.1", other.getsockname()[1], 1, 2, 5.0, 5.0)


def test_nothing_listens(port):
    with pytest.raises(DistributedTimeoutError, match=f"tried for 0.2 seconds to reach process 0 at 127.0.0.1:{port}"):
        Link("127.0.0.1", port, 1, 2, 0.2, 5.0)


def test_the_port_is_taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(DistributedError, match=r"cannot listen at 127\.0\.0\.1:\d+: Address already in use"):
            Coordinator("127.0.0.1", other.getsockname()[1], 1, 5.0, 5.0)


@pytest.mark.slow
def test_a_silent_process_and_a_call_that_waits_for_it(port):
    """A call in C++ is left behind, and the error names the process; a call that is done has its result."""
    with Together(port, 3, heartbeat=1.0) as them:
        them.join_all()
        pings = them.links[2]._tasks[0]
        them.links[2].loop.loop.call_soon_threadsafe(pings.cancel)
        with pytest.raises(
            ProcessLostError, match=r"waiting needs all .* process 2 is gone: it sent no heartbeat"
        ) as caught:
            them.links[1].result(lambda: time.sleep(30), "waiting")
        assert caught.value.processes == (2,)
        until(lambda: them.links[2].gone)  # if it goes on, it knows why the others do not
        assert them.links[2].gone == {2: "it sent no heartbeat for 1 seconds"}
        with pytest.raises(ProcessLostError, match="process 2 is gone"):
            them.links[2].result(lambda: time.sleep(30), "waiting", (0, 1))
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.processes) == (str(caught.value), (2,))
        assert them.links[0].result(lambda: 3, "a sum") == 3
        with pytest.raises(ZeroDivisionError):
            them.links[0].result(lambda: 1 / 0, "a quotient")


def test_the_connection_to_the_service_is_cut(port):
    """Nothing is said about it but by the link, which ends; the runtime's client, which would abort, keeps its own."""
    with (
        Together(port, 3) as them,
        socket.create_server(("127.0.0.1", 0)) as service,
        contextlib.closing(Proxy(port)) as proxy,
    ):
        them.coordinator.service_port = service.getsockname()[1]
        threads = [them.join(i, port=proxy.port if i == 2 else port) for i in range(3)]
        for thread in threads:
            thread.join()
        with socket.create_connection(("127.0.0.1", them.links[2].relay_port)) as client, service.accept()[0] as server:
            client.sendall(b"question")
            assert server.recv(100) == b"question"
            server.sendall(b"answer")
            assert client.recv(100) == b"answer"
            proxy.pairs[-1][0].shutdown(socket.SHUT_RDWR)
            until(lambda: them.links[2].gone and them.links[0].gone and them.links[1].gone)
            ended = "its connection ended: it crashed, was killed, or was cut off"
            assert [them.links[i].gone for i in range(3)] == [{2: ended}, {2: ended}, {0: ended}]
            client.sendall(b"question")
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.recv(100)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(1, 2), (2,)])
def test_a_connection_of_collectives_is_cut(port, ends):
    """The processes at its two ends name each other, and the rest name both; if one alone fails, it names itself."""
    failed = ExecutionError("the runtime says: Gloo all-reduce failed: Connection closed by peer [127.0.0.1]:1")
    errors = {}
    with Together(port, 4) as them:
        them.join_all()
        other = ExecutionError("a division by zero")
        assert them.links[3].explained(other, "waiting") is other  # another error is no reason to stop
        explain = lambda i: errors.update({i: them.links[i].explained(failed, "waiting")})
        threads = [threading.Thread(target=explain, args=(i,)) for i in ends]
        for thread in threads:
            thread.start()
        for i in {0, 1, 2, 3}.difference(ends):
            until(lambda i=i: set(them.links[i].gone) == set(ends))
            with pytest.raises(ProcessLostError, match=r"process 2 is gone: its collectives fail, .*: Gloo all-reduce"):
                them.links[i].result(lambda: time.sleep(30), "waiting")
        for thread in threads:
            thread.join()
        assert {i: error.processes for i, error in errors.items()} == (
            {1: (2,), 2: (1,)} if len(ends) > 1 else {2: (2,)}
        )


def test_collectives_fail_because_a_process_is_gone(port):
    """The errors name this process, and not those whose collectives fail."""
    with Together(port, 3) as them:
        them.join_all()
        them.links[2].writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        error = them.links[1].explained(ExecutionError("Gloo all-reduce failed: Connection closed by peer"), "waiting")
        assert error.processes == (2,)
        time.sleep(1)
        assert set(them.links[0].gone) == {2}


BAD = [
    (
        {"num_processes": 2, "process_id": 0},
        ArgumentError,
        "coordinator_address is missing, PULLBACK_COORDINATOR_ADDRESS and JAX_COORDINATOR_ADDRESS are not set",
    ),
    ({"coordinator_address": "localhost:1", "process_id": 0}, ArgumentError, "num_processes is missing"),
    ({"coordinator_address": "localhost:1", "num_processes": 1}, ArgumentError, "process_id is missing"),
    (("localhost", 2, 0), ArgumentError, "must be a host and a port, such as '10.0.0.1:1234', got 'localhost'"),
    (("localhost:99999", 2, 0), ArgumentError, "got 'localhost:99999'"),
    ((3, 2, 0), ArgumentError, "got 3"),
    (
        ("localhost:1", 2, 2),
        ArgumentError,
        "process_id must be from 0 to num_processes - 1, which is 1, got 2",
    ),
    (("localhost:1", 2, -1), ArgumentError, "process_id must be at least 0, got -1"),
    (("localhost:1", 0, 0), ArgumentError, "num_processes must be at least 1, got 0"),
    (("localhost:1", 1.5, 0), ArgumentError, "num_processes must be an integer, got 1.5"),
    (("localhost:1", 2, 0, "all"), ArgumentError, "local_device_ids must be an integer, got 'a'"),
    (("localhost:1", 2, 0, None, "slurm"), ArgumentError, "cluster='slurm': SLURM_JOB_ID and"),
    (("localhost:1", 2, 0, None, None, -1), ArgumentError, "initialization_timeout must be a positive number"),
    (("localhost:1", 2, 0, None, None, 1, "x"), ArgumentError, "heartbeat_timeout_seconds must be a positive number"),
    (
        ("localhost:1", 2, 0, None, None, 1, 1, 1, "x"),
        ArgumentError,
        "coordinator_bind_address must be a host and a port",
    ),
    (("localhost:1", 2, 0, None, None, 1, 1, 1, None, 1), UnsupportedArgumentError, "slice_index is for TPUs"),
    (
        ("localhost:1", 2, 0, None, None, 1, 1, 1, None, None, None, "cert"),
        UnsupportedArgumentError,
        "mtls_cert_file is for encrypted connections",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD, ids=range(len(BAD)))
def test_bad_arguments(monkeypatch, arguments, error, message):
    for name in ("PULLBACK_COORDINATOR_ADDRESS", "JAX_COORDINATOR_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    options = arguments if isinstance(arguments, dict) else {}
    with pytest.raises(error) as caught:
        pullback.distributed.initialize(*(() if options else arguments), **options)
    assert message in str(caught.value)
    assert isinstance(caught.value, (ValueError, NotImplementedError))
    assert not pullback.distributed.is_initialized()


def test_initialize_after_the_first_program():
    pullback.jit(lambda x: x + 1)(1.0)
    with pytest.raises(DistributedError, match="before the first program is compiled"):
        pullback.distributed.initialize("localhost:1", 2, 0)


def test_addresses():
    assert address("a.b:80", "x") == ("a.b", 80)
    assert address("[::1]:80", "x") == ("::1", 80)
    assert address(":80", "coordinator_bind_address") == ("", 80)


def test_local_devices_of_no_process():
    with pytest.raises(ArgumentError, match=r"process_index must be one of process_indices\(\), \[0\], got 1"):
        pullback.local_devices(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--processes", "0", "x.py"], "the number of processes must be at least 1, got 0"),
        (["--processes", "2", "--devices", "0", "x.py"], "the number of devices must be at least 1, got 0"),
        (["--processes", "2"], "there is no program to launch"),
        (["--processes", "2", "-m"], "there is no program to launch"),
        (["--processes", "2", "nowhere.py"], "the program 'nowhere.py' does not exist"),
        (["--processes", "2", "--restart", "-1", "x.py"], "the number of restarts must be at least 0, got -1"),
        (["--processes", "2", "--grace", "-1", "x.py"], "--grace must be a number of seconds, got -1"),
    ],
)
def test_launching_what_makes_no_sense(capsys, arguments, message):
    assert command.main(["launch", *arguments]) == 2
    assert message in capsys.readouterr().err
