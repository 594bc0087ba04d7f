"""Several processes that compute together: how they find each other, and what they say to each other."""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pullback.backends.compiler.backend import Group, Service, Store, backend
from pullback.backends.devices import devices
from pullback.backends.processes import forks
from pullback.backends.processes.links import Coordinator, Link, address, name_processes
from pullback.core.errors import (
    ArgumentError,
    DistributedError,
    ProcessLostError,
    ProcessMismatchError,
    UnsupportedArgumentError,
)
from pullback.core.runtime import runtime


class Membership:
    """This process's part among several.

    Attributes:
      link: the connection to process 0.
      store: the values that the processes have in common.
      coordinator, service: what process 0 has for the others; None in others.
    """

    def __init__(
        self, link: Link, store: Store, coordinator: Coordinator | None, service: Service | None, patience: float
    ) -> None:
        self.link = link
        self.store = store
        self.coordinator = coordinator
        self.service = service
        self.patience = patience
        self.steps: dict[str, int] = {}
        self.agreed: set[bytes] = set()
        self.lock = threading.Lock()

    def exchange(self, what: str, mine: bytes, of: Sequence[int] | None = None) -> list[bytes]:
        """What each process has to say; see the function :func:`exchange`."""
        me = self.link.process
        numbers = range(self.link.processes) if of is None else of
        which = "all" if of is None else "-".join(map(str, of))
        with self.lock:
            step = self.steps[which] = self.steps.get(which, 0) + 1
            key = f"pullback/{which}/{step}"
            try:
                self._say(f"{key}/{me}", what.encode(), mine)
                heard = [(what.encode(), mine) if i == me else self._hear(f"{key}/{i}", i) for i in numbers]
                if step > 1:  # all have read what was said in the step before: they said something after it
                    self.store.delete(f"pullback/{which}/{step - 1}/{me}")
            except ProcessLostError:
                raise self.link.lost(what) from None
        others = {i: said.decode() for i, (said, _) in zip(numbers, heard, strict=True) if said != what.encode()}
        if others:
            found = "; ".join(f"process {i} is at {said}" for i, said in others.items())
            raise ProcessMismatchError(
                f"process {me} is at {what}, but {found}: all processes must do the same things, in the same order"
            )
        return [payload for _, payload in heard]

    def _say(self, key: str, what: bytes, payload: bytes) -> None:
        pieces = range(0, len(payload), _PIECE)
        self.store.put(f"{key}/what", b"%d %s" % (len(pieces), what))
        for i, start in enumerate(pieces):
            self.store.put(f"{key}/{i}", payload[start : start + _PIECE])

    def _hear(self, key: str, process: int) -> tuple[bytes, bytes]:
        pieces, _, what = self.store.get(f"{key}/what", process).partition(b" ")
        return what, b"".join(self.store.get(f"{key}/{i}", process) for i in range(int(pieces)))


_PIECE = 1 << 20
"""How many bytes a message to the coordination service has: it takes four times as many."""


def exchange(what: str, mine: bytes) -> list[bytes]:
    """What each process has to say, in the order of their numbers. It goes by process 0: for small things.

    All processes call it, in the same order.

    Args:
      what: names what they do; the same in all.
      mine: what this process says.

    Raises:
      ProcessMismatchError: other processes do something else (a RuntimeError and AssertionError).
      ProcessLostError: a process is gone (a RuntimeError).
    """
    return [mine] if here.member is None else here.member.exchange(what, mine)


@dataclass
class Standing:
    """Where this process stands.

    Attributes:
      member: what it is a part of, from :func:`initialize` to :func:`shutdown`.
      was_member: whether it ever was a part of something.
    """

    member: Membership | None = None
    was_member: bool = False

    def left(self) -> Membership | None:
        """What the process was a part of, and is no more."""
        member, self.member = self.member, None
        return member


here = Standing()


def agree(name: str, digest: bytes, of: Sequence[int]) -> None:
    """Check that processes are about to compile the same program: collectives of different ones end the process.

    It is asked once for each program.

    Args:
      name: of the program.
      digest: stands for its text.
      of: the processes that run it.

    Raises:
      ProcessMismatchError: they are not (a RuntimeError and AssertionError).
    """
    member = here.member
    if member is None:
        raise DistributedError(f"the program {name} is for devices of several processes, and this one left them")
    if digest not in member.agreed:
        member.exchange(f"compiling the program {name}, number {digest.hex()[:16]}", b"", of)
        member.agreed.add(digest)


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: float = 100,
    shutdown_timeout_seconds: float = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Make this process one of several that compute together.

    All of them call it, with the same address and number of processes, before the first program is compiled. Process 0
    listens at the address. From then on :func:`pullback.devices` are those of all. A process that ends, crashes or is
    cut off is, in the others, a ``ProcessLostError`` that names it, in whatever they do together.

    Args:
      coordinator_address: host and port of process 0, such as ``"10.0.0.1:1234"``. By default the environment variable
        ``PULLBACK_COORDINATOR_ADDRESS`` or ``JAX_COORDINATOR_ADDRESS``.
      num_processes: how many processes there are. By default ``PULLBACK_NUM_PROCESSES`` or ``JAX_NUM_PROCESSES``.
      process_id: the number of this one, from 0. By default ``PULLBACK_PROCESS_ID`` or ``JAX_PROCESS_ID``.
      local_device_ids: the graphics processors of this machine that this process uses; all, by default. Processors'
        devices are as many as the switch ``num_cpu_devices`` says, whatever is given here.
      cluster_detection_method: None or ``"deactivate"``.
      initialization_timeout: for how many seconds to wait for the others.
      heartbeat_timeout_seconds: after how many of silence a process is taken to be gone; one that crashes is at once.
      shutdown_timeout_seconds: for how many seconds process 0 waits for the others when it ends.
      coordinator_bind_address: where process 0 listens, if elsewhere.
      slice_index, partition_index: must be None.

    Raises:
      ArgumentError: an argument is missing, or makes no sense (a ValueError).
      DistributedError: this process is one of several already, it has compiled a program already, or process 0 refuses
        it, since its number is taken for example (a RuntimeError).
      DistributedTimeoutError: process 0, or another process, was not there in time (a TimeoutError).

    >>> initialize("localhost:0", 2, 2)
    Traceback (most recent call last):
        ...
    pullback.core.errors.ArgumentError: coordinator_address must be a host and a port, ...
    """
    _check_first()
    where = address(_given(coordinator_address, "coordinator_address", "ADDRESS"), "coordinator_address")
    process, count = _position(process_id, num_processes)
    _check_unsupported(cluster_detection_method, slice_index=slice_index, partition_index=partition_index)
    timeout = _seconds(initialization_timeout, "initialization_timeout")
    heartbeat = _seconds(heartbeat_timeout_seconds, "heartbeat_timeout_seconds")
    patience = _seconds(shutdown_timeout_seconds, "shutdown_timeout_seconds")
    bind = where if coordinator_bind_address is None else address(coordinator_bind_address, "coordinator_bind_address")
    visible = _visible(local_device_ids)
    _check_unused()
    made = _join(where, bind, process, count, timeout, heartbeat, visible)
    devices.join(process, count)
    here.member, here.was_member = Membership(*made, patience), True


def _join(
    where: tuple[str, int],
    bind: tuple[str, int],
    process: int,
    count: int,
    timeout: float,
    heartbeat: float,
    visible: tuple[int, ...] | None,
) -> tuple[Link, Store, Coordinator | None, Service | None]:
    """Meet the other processes."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") == "1":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # no warning that the service tolerates processes that are lost
    coordinator = service = link = None
    try:
        if process == 0:
            coordinator = Coordinator(*bind, count, timeout, heartbeat)
            service = backend().serve(count, timeout)
            coordinator.service_port = service.port
        link = Link(*where, process, count, timeout, heartbeat)
        port = service.port if service is not None else link.relay_port
        group = Group(process, count, port, link.address, timeout, visible, link)
        forks.used.append("distributed")
        return link, backend().join(group), coordinator, service
    except BaseException:
        if link is not None:
            link.leave("it could not be initialized")
            link.stop(client_ended=False)
        if coordinator is not None:
            coordinator.stop()
        if service is not None:
            service.stop()
        raise


def _check_first() -> None:
    if here.member is not None:
        link = here.member.link
        raise DistributedError(
            f"initialize was called already: this is process {link.process} of {link.processes}, with process 0 at "
            f"{link.host}:{link.port}. Call it once."
        )


def _check_unused() -> None:
    forks.check("distributed.initialize")
    if here.was_member or forks.used:
        raise DistributedError(
            "initialize must be called before the first program is compiled, and before anything else that uses a "
            "device, such as device_put or jit, in this process: call it first."
        )


def _check_unsupported(method: str | None, **indices: Any) -> None:
    for name, value in indices.items():
        if value is not None:
            raise UnsupportedArgumentError(f"{name} is for TPUs, and must be None here, got {value!r}")
    if method not in (None, "deactivate"):
        raise UnsupportedArgumentError(
            f"clusters are not asked, got cluster_detection_method={method!r}: give coordinator_address, num_processes "
            "and process_id, from the variables of your cluster's scheduler"
        )


def _given(value: Any, argument: str, short: str) -> Any:
    """An argument, or what the environment says of it."""
    if value is not None:
        return value
    names = {
        "ADDRESS": ("PULLBACK_COORDINATOR_ADDRESS", "JAX_COORDINATOR_ADDRESS"),
        "PROCESSES": ("PULLBACK_NUM_PROCESSES", "JAX_NUM_PROCESSES"),
        "ID": ("PULLBACK_PROCESS_ID", "JAX_PROCESS_ID"),
    }[short]
    for name in names:
        if name in os.environ:
            return os.environ[name]
    raise ArgumentError(
        f"{argument} is not given, and neither {' nor '.join(names)} is in the environment: give it, or start the "
        "processes with `python -m pullback launch`"
    )


def _position(process_id: Any, num_processes: Any) -> tuple[int, int]:
    """The number of this process, and how many there are."""
    count = _number(_given(num_processes, "num_processes", "PROCESSES"), "num_processes", 1)
    process = _number(_given(process_id, "process_id", "ID"), "process_id", 0)
    if process >= count:
        raise ArgumentError(f"process_id must be below num_processes={count}, since they count from 0, got {process}")
    return process, count


def _number(value: Any, argument: str, least: int) -> int:
    try:
        number = int(value) if isinstance(value, str) else value.__index__()
    except (AttributeError, TypeError, ValueError):
        raise ArgumentError(f"{argument} must be an integer, got {value!r}") from None
    if number < least:
        raise ArgumentError(f"{argument} must be at least {least}, got {number}")
    return int(number)


def _seconds(value: Any, argument: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ArgumentError(f"{argument} must be a positive number of seconds, got {value!r}")
    return float(value)


def _visible(ids: Any) -> tuple[int, ...] | None:
    if ids is None:
        return None
    return tuple(_number(i, "local_device_ids", 0) for i in ([ids] if isinstance(ids, int) else ids))


def is_initialized() -> bool:
    """Whether this process is one of several that compute together.

    >>> is_initialized()
    False
    """
    return here.member is not None


def shutdown() -> None:
    """Take no further part. It happens by itself when the process ends, and does nothing where nothing was initialized.

    The others are told. Process 0 waits for them, up to ``shutdown_timeout_seconds`` of :func:`initialize`, since they
    find each other through it. Arrays stay readable, and programs of this process's devices can run.

    Raises:
      DistributedError: in process 0, others are still there after this time (a RuntimeError).

    >>> shutdown()
    """
    stragglers = _leave("it called distributed.shutdown")
    if stragglers:
        raise DistributedError(
            f"{name_processes(stragglers)} did not end in time (shutdown_timeout_seconds); what they do together with "
            "others will fail"
        )


def _forget() -> None:
    """In a forked child: it takes no part, and must not keep the parent's connections when the parent ends."""
    left = here.left()
    if left is not None:
        left.link.forget()
        if left.coordinator is not None:
            left.coordinator.forget()


runtime.forked.append(_forget)


def _leave(why: str) -> list[int]:
    left = here.left()
    if left is None:
        return []
    left.link.leave(why)
    stragglers: list[int] = []
    if left.coordinator is not None:
        stragglers = left.coordinator.wait_for_the_others(left.patience)
    left.link.stop(client_ended=left.store.close(left.coordinator is not None or left.link.connected))
    if left.coordinator is not None:
        left.coordinator.stop()
    if left.service is not None:
        left.service.stop()
    return stragglers


@atexit.register
def _at_exit() -> None:
    failed = getattr(sys, "last_value", None)
    stragglers = _leave("it ended" if failed is None else f"it ended with {type(failed).__name__}: {failed}"[:500])
    if stragglers:
        print(f"pullback: {name_processes(stragglers)} did not end in time", file=sys.stderr)
