"""Groups of processes that compute together: initialization, small messages between them, and shutdown."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import json
import math
import os
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.backends.compiler.backend import Group, Service, Store, backend
from pullback.backends.devices import devices
from pullback.backends.processes import forks
from pullback.backends.processes.links import TOKEN, Coordinator, Link, address, name_processes
from pullback.core.errors import (
    ArgumentError,
    DistributedError,
    ProcessLostError,
    ProcessMismatchError,
    UnsupportedArgumentError,
)
from pullback.core.runtime import runtime


class Membership:
    """The membership of this process in a group of processes.

    Attributes:
      link: the connection to process 0.
      store: the key-value store that the processes share.
      coordinator: the end at process 0 of the links of all processes; None in other processes.
      service: the coordination service, which process 0 runs; None in other processes.
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

    def exchange(self, what: str, message: bytes, of: Sequence[int] | None = None) -> list[bytes]:
        """Gather a message from each of the processes ``of``, in their order; from all processes if None.

        The first of them reads what the others say, and answers all at once: three requests for each process.
        ``message`` is this process's message, and ``what`` the operation's name; see the function :func:`exchange`.
        """
        me = self.link.process
        numbers = range(self.link.processes) if of is None else of
        if len(numbers) == 1:
            return [message]
        which = "all" if of is None else hashlib.sha256(repr([*of]).encode()).hexdigest()[:32]
        with self.lock:
            step = self.steps[which] = self.steps.get(which, 0) + 1
            key = f"pullback/{which}/{step}"
            try:
                if me == numbers[0]:
                    said = [(what.encode(), message), *(tuple(self._hear(f"{key}/{i}", (0, i))) for i in numbers[1:])]
                    answer = _answer(said)
                    self._say(f"{key}/answer", answer)
                    self.store.delete(f"pullback/{which}/{step - 1}")  # all have read it, since they sent a later one
                else:
                    self._say(f"{key}/{me}", [what.encode(), message])
                    answer = self._hear(f"{key}/answer", {0, *numbers})
            except ProcessLostError:
                raise self.link.lost(what) from None
        verdict, *parts = answer
        if verdict == _SAME:
            return parts or [b""] * len(numbers)
        others = {i: name.decode() for i, name in zip(numbers, parts, strict=True) if name != what.encode()}
        found = "; ".join(f"process {i} is at {name}" for i, name in others.items())
        raise ProcessMismatchError(
            f"process {me} is at {what}, but {found}: all processes must run the same operations in the same order"
        )

    def _say(self, key: str, parts: Sequence[bytes]) -> None:
        """Store texts under a key: their sizes first, all in pieces, whose number comes before the first."""
        content = b"".join([json.dumps([len(part) for part in parts]).encode(), b"\n", *parts])
        starts = range(0, len(content), _PIECE)
        for i, start in enumerate(starts):
            head = b"" if i else b"%d " % len(starts)
            self.store.put(f"{key}/{i}", head + content[start : start + _PIECE])

    def _hear(self, key: str, of: Collection[int]) -> list[bytes]:
        """Wait for the texts under a key, and return them; the processes ``of`` are needed for it."""
        count, _, content = self.store.get(f"{key}/0", of).partition(b" ")
        content = b"".join([content, *(self.store.get(f"{key}/{i}", of) for i in range(1, int(count)))])
        sizes, _, content = content.partition(b"\n")
        ends = list(itertools.accumulate(json.loads(sizes)))
        return [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _answer(said: Sequence[tuple[bytes, ...]]) -> list[bytes]:
    """Return what the first process answers to the names of operations and messages that all have said.

    It is the messages, if all are at the same operation and one has a message; otherwise the names.
    """
    if any(what != said[0][0] for what, _ in said):
        return [_DIFFERENT, *(what for what, _ in said)]
    messages = [message for _, message in said]
    return [_SAME, *(messages if any(messages) else [])]


_SAME, _DIFFERENT = b"same", b"different"
"""Whether all processes are at the same operation."""
_PIECE = 1 << 20
"""The bytes of a message to the coordination service, whose limit is four times as large."""


def exchange(what: str, message: bytes) -> list[bytes]:
    """Gather a small message from each process, in the order of their numbers, through process 0.

    All processes must call this in the same order.

    Args:
      what: the name of the operation, equal in all processes.
      message: the message of this process.

    Raises:
      ProcessMismatchError: other processes call it for another operation (a RuntimeError and AssertionError).
      ProcessLostError: a process is gone (a RuntimeError).
    """
    return [message] if here.member is None else here.member.exchange(what, message)


@dataclass
class State:
    """Whether this process is, or was, in a group of processes.

    Attributes:
      member: its membership in a group, from :func:`initialize` to :func:`shutdown`; else None.
      was_member: whether this process ever belonged to a group.
    """

    member: Membership | None = None
    was_member: bool = False

    def left(self) -> Membership | None:
        """End the membership of this process in its group; return the former membership, or None if there was none."""
        member, self.member = self.member, None
        return member


here = State()


def agree(name: str, digest: bytes, of: Sequence[int]) -> None:
    """Check that the processes ``of`` are about to compile the same program, once for each program.

    Without the check, collectives of different programs would crash a process.

    Args:
      name: the name of the program.
      digest: a digest of the program's text.
      of: the processes that run the program.

    Raises:
      ProcessMismatchError: the programs differ (a RuntimeError and AssertionError).
    """
    member = here.member
    if member is None:
        raise DistributedError(
            f"the program {name} needs the devices of several processes, but this process has left them"
        )
    if digest not in member.agreed:
        member.exchange(f"compiling the program {name}, number {digest.hex()[:16]}", b"", of)
        member.agreed.add(digest)


# long: half of it is its documentation
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
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
    *,
    cluster: str | None = None,
) -> None:
    """Join this process to a group that computes together.

    All processes call this, with the same address and number of processes, before they compile the first program.
    Under a scheduler or a launcher that it knows (see ``cluster``), it needs no arguments.
    Process 0 listens at the address, and refuses whoever does not know the token in its environment variable
    ``PULLBACK_JOB_TOKEN``, which ``python -m pullback launch`` sets. Afterwards :func:`pullback.devices` lists the
    devices of all processes. If a process ends, crashes, stops or is cut off, the others raise a ``ProcessLostError``
    that names it when they compute together.

    Args:
      coordinator_address: host and port of process 0, such as ``"10.0.0.1:1234"``. By default the environment variable
        ``PULLBACK_COORDINATOR_ADDRESS`` or ``JAX_COORDINATOR_ADDRESS``, otherwise what the cluster says.
      num_processes: how many processes there are. By default ``PULLBACK_NUM_PROCESSES`` or ``JAX_NUM_PROCESSES``,
        otherwise what the cluster says.
      process_id: the number of this process, from 0. By default ``PULLBACK_PROCESS_ID`` or ``JAX_PROCESS_ID``,
        otherwise what the cluster says.
      local_device_ids: the GPUs of this machine that this process uses. By default one, where the cluster runs several
        processes on a machine that see the same GPUs; otherwise all. The number of CPU devices is the switch
        ``num_cpu_devices`` in any case.
      cluster_detection_method: JAX's name for ``cluster``.
      initialization_timeout: seconds to wait for the other processes.
      heartbeat_timeout_seconds: seconds of silence after which a process counts as lost; a crash is noticed directly.
      shutdown_timeout_seconds: seconds that process 0 waits for the others when it ends.
      coordinator_bind_address: the address at which process 0 listens, if it is another one.
      slice_index, partition_index: must be None.
      mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix: must be None: processes know each other by the
        token, and their connections are not encrypted.
      verify_secure_credentials: must not be True, for the same reason.
      cluster: what started the processes: ``"mpi4py"``, ``"openmpi"``, ``"mpich"`` (Intel MPI too), ``"torchrun"``,
        ``"slurm"``, ``"pmix"``, ``"kubernetes"``, ``"sagemaker"`` or ``"tpu"``, which then decides rather than the
        variables above. By default it is recognised by its own environment variables. ``"deactivate"`` looks for none.

    Raises:
      ArgumentError: an argument is missing or invalid (a ValueError).
      DistributedError: this process has joined a group or compiled a program already, or process 0 refuses it, for
        example because another process has its number (a RuntimeError).
      DistributedTimeoutError: process 0, or another process, did not appear in time (a TimeoutError).

    >>> from pullback import distributed
    >>> distributed.initialize("localhost:0", 2, 2)
    Traceback (most recent call last):
        ...
    pullback.core.errors.ArgumentError: coordinator_address must be a host and a port, ...
    """
    _check_first()
    known = _Known(cluster, cluster_detection_method)
    where = address(known.argument(coordinator_address, "coordinator_address"), "coordinator_address")
    process, count = _position(known, process_id, num_processes)
    _check_unsupported(
        slice_index=slice_index, partition_index=partition_index,
        mtls_cert_file=mtls_cert_file, mtls_key_file=mtls_key_file, mtls_ca_file=mtls_ca_file,
        mtls_peer_uri_prefix=mtls_peer_uri_prefix, verify_secure_credentials=verify_secure_credentials or None,
    )  # fmt: skip
    timeout = _seconds(initialization_timeout, "initialization_timeout")
    heartbeat = _seconds(heartbeat_timeout_seconds, "heartbeat_timeout_seconds")
    patience = _seconds(shutdown_timeout_seconds, "shutdown_timeout_seconds")
    bind = where if coordinator_bind_address is None else address(coordinator_bind_address, "coordinator_bind_address")
    visible = known.devices() if local_device_ids is None else _visible(local_device_ids)
    _check_unused()
    joined = _join(where, bind, process, count, timeout, heartbeat, visible, known.token())
    devices.join(process, count)
    here.member, here.was_member = Membership(*joined, patience), True


def _join(
    where: tuple[str, int],
    bind: tuple[str, int],
    process: int,
    count: int,
    timeout: float,
    heartbeat: float,
    visible: tuple[int, ...] | None,
    token: str,
) -> tuple[Link, Store, Coordinator | None, Service | None]:
    """Connect to the other processes; in process 0, start the coordinator and the coordination service first.

    Args:
      where: host and port of process 0.
      bind: host and port at which process 0 listens.
      process: the number of this process.
      count: how many processes there are.
      timeout: seconds to wait for the other processes.
      heartbeat: seconds of silence after which a process counts as lost.
      visible: the numbers of the machine's devices that this process uses; None for all.
      token: the secret of the job.

    Returns:
      The link to process 0, the key-value store, and in process 0 the coordinator and the service, else None.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") == "1":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # silences a warning that the service tolerates lost processes
    coordinator = service = link = group = None
    try:
        if process == 0:
            coordinator = Coordinator(*bind, count, timeout, heartbeat, token)
            service = backend().serve(count)
            coordinator.service_port = service.port
        link = Link(*where, process, count, timeout, heartbeat, token)
        port = service.port if service is not None else link.relay_port
        group = Group(process, count, port, link.address, timeout, visible, link)
        forks.used.append("distributed")
        return link, backend().join(group), coordinator, service
    except BaseException:
        if link is not None:
            link.leave("initialization failed")
            link.stop(client_ended=False)
        if coordinator is not None:
            coordinator.stop()
        if service is not None:
            service.stop(client_ended=group is None)
        raise


def _check_first() -> None:
    if here.member is not None:
        link = here.member.link
        raise DistributedError(
            f"initialize was already called: this is process {link.process} of {link.processes}, with process 0 at "
            f"{link.host}:{link.port}. Call it once."
        )


def _check_unused() -> None:
    forks.check("distributed.initialize")
    if here.was_member or forks.used:
        raise DistributedError(
            "initialize must be called before the first program is compiled, and before anything else that uses a "
            "device, such as device_put or jit, in this process: call initialize first."
        )


def _check_unsupported(**indices: Any) -> None:
    for name, value in indices.items():
        if value is not None:
            why = "is for TPUs" if name.endswith("index") else "is for encrypted connections, which there are not"
            raise UnsupportedArgumentError(f"{name} {why}, and must be None here, got {value!r}")


class _Known:
    """What ``initialize`` can find out by itself: environment variables of its own, and those of a cluster.

    Attributes:
      cluster: the kind of cluster that this process runs on, once it was asked for anything; else None.

    Args:
      cluster: the argument ``cluster`` of ``initialize``.
      method: its argument ``cluster_detection_method``.
    """

    def __init__(self, cluster: Any, method: Any) -> None:
        if None not in (cluster, method) and cluster != method:
            raise ArgumentError(
                f"cluster and cluster_detection_method are the same argument, got {cluster!r} and {method!r}: pass one"
            )
        self.named = method if cluster is None else cluster
        self.cluster: Any = None
        if self.named not in (None, "deactivate"):
            self._look()

    def _look(self) -> str:
        """Find the kind of cluster that this process runs on; return why, if there is none."""
        from pullback.backends.processes import clusters  # only where something is missing

        if self.named == "deactivate":
            return "no cluster is looked for"
        self.cluster = clusters.find(os.environ, self.named)
        return clusters.looked_for()

    def argument(self, value: Any, argument: str) -> Any:
        """Return the value of an argument of ``initialize``; if it is None, what the environment says."""
        if value is not None:
            return value
        names = [f"{prefix}_{argument.upper()}" for prefix in ("PULLBACK", "JAX")]
        found = next((os.environ[name] for name in names if name in os.environ), None)
        if found is not None and self.named in (None, "deactivate"):
            return found
        why = self._look()
        if self.cluster is None:
            raise ArgumentError(f"{argument} is missing, {' and '.join(names)} are not set, and {why}. {_START}")
        ask = {"coordinator_address": "address", "num_processes": "count", "process_id": "number"}[argument]
        return getattr(self.cluster, ask)(os.environ)

    def devices(self) -> tuple[int, ...] | None:
        """Return the GPUs of the machine that this process should use; None for all."""
        return None if self.cluster is None else self.cluster.devices(os.environ)

    def token(self) -> str:
        """Return the secret of the job: that of the user or of ``launch``, otherwise what the cluster gives it."""
        return os.environ.get(TOKEN) or ("" if self.cluster is None else self.cluster.token(os.environ))


_START = "Pass it, or start the processes with `python -m pullback launch`"


def _position(known: _Known, process_id: Any, num_processes: Any) -> tuple[int, int]:
    """Return the number of this process, and how many processes there are.

    An argument that is None is taken from the environment. Raises ArgumentError if the numbers are invalid.
    """
    count = _number(known.argument(num_processes, "num_processes"), "num_processes", 1)
    process = _number(known.argument(process_id, "process_id"), "process_id", 0)
    if process >= count:
        raise ArgumentError(f"process_id must be from 0 to num_processes - 1, which is {count - 1}, got {process}")
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
    """Whether this process belongs to a group that computes together.

    Returns:
      True after :func:`initialize`, until :func:`shutdown`; otherwise False.

    >>> from pullback import distributed
    >>> distributed.is_initialized()
    False
    """
    return here.member is not None


def shutdown() -> None:
    """Leave the group of processes. The end of the process does it too; without a group there is no effect.

    The other processes receive a message. Process 0 waits for them, up to ``shutdown_timeout_seconds`` of
    :func:`initialize`, since they communicate through it. Arrays stay readable, and programs on this process's devices
    still run.

    Raises:
      DistributedError: in process 0, other processes have not left after this time (a RuntimeError).

    >>> from pullback import distributed
    >>> distributed.shutdown()
    """
    stragglers = _leave("it called distributed.shutdown")
    if stragglers:
        raise DistributedError(
            f"{name_processes(stragglers)} did not end in time (shutdown_timeout_seconds); their joint operations "
            f"with other processes will fail"
        )


def _forget() -> None:
    """Leave the group of processes, in a forked child.

    It closes the child's copies of the connections, so that the parent's connections close when the parent ends.
    """
    member = here.left()
    if member is not None:
        member.link.forget()
        member.store.forget()
        if member.coordinator is not None:
            member.coordinator.forget()
        if member.service is not None:
            member.service.forget()


runtime.forked.append(_forget)


def _leave(why: str) -> list[int]:
    member = here.left()
    if member is None:
        return []
    member.link.leave(why)
    stragglers: list[int] = []
    if member.coordinator is not None:
        stragglers = member.coordinator.wait_for_the_others(member.patience)
    ended = member.store.close(member.coordinator is not None or member.link.connected)
    member.link.stop(client_ended=ended)
    if member.coordinator is not None:
        member.coordinator.stop()
    if member.service is not None:
        member.service.stop(client_ended=ended)
    return stragglers


@atexit.register
def _at_exit() -> None:
    failed = getattr(sys, "last_value", None)
    stragglers = _leave("it ended" if failed is None else f"it ended with {type(failed).__name__}: {failed}"[:500])
    if stragglers:
        print(f"pullback: {name_processes(stragglers)} did not end in time", file=sys.stderr)
