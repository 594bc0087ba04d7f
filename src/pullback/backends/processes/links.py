"""Links between processes that compute together, which detect processes that are gone.

Process 0 listens at the coordinator's address. Every process, including process 0, connects to it, identifies itself,
and then sends heartbeats. If a connection ends, or is silent for too long, its process is gone, and process 0 informs
the others. One thread in each process does this.

The runtime has a coordination service, by which its clients find each other, with heartbeats of its own. Its client
aborts the process as soon as it cannot reach the service, and Python cannot prevent that. So the service listens only
on the loopback interface of process 0, and the others reach it through a relay: each client connects to a socket of its
own process, which forwards the bytes to process 0, and from there to the service. If process 0 is gone, the relay keeps
the client's connection open, and the client waits instead of aborting the process.

Messages are lines of JSON. The first one on each connection proves that its process knows the token of the job, and so
does the answer of process 0: other jobs, and other users of the machine, take no part. The token itself is not sent.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hmac
import json
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any, NamedTuple, TypeVar

from pullback.backends.compiler.backend import GRACE, SLICE
from pullback.backends.processes.calls import Call, Callers
from pullback.core import systems
from pullback.core.errors import ArgumentError, DistributedError, DistributedTimeoutError, ProcessLostError

T = TypeVar("T")
TOKEN = "PULLBACK_JOB_TOKEN"
"""The environment variable with the token of the job."""
_VERSION = 2
"""The version of the messages, in the first one on each connection."""
_LIMIT = 1 << 16
_BACKLOG = 1024
_ENDED = "its connection ended: it crashed, was killed, or was cut off"
_SETTLING = 0.5
"""Seconds for which a cut connection may be the sign of a process that is gone, which process 0 will know."""
SHORT_GRACE = 0.5
"""The ``GRACE`` of a call of the coordination service, in seconds."""


def _proof(token: str, nonce: str, role: str) -> str:
    """What only those can compute who know the token; ``role`` is what they say by it."""
    key, text = (text.encode(errors="surrogatepass") for text in (token, f"{role} {nonce}"))
    return hmac.digest(key, text, "sha256").hex()


def _hello(token: str, role: str, **more: Any) -> dict[str, Any]:
    """The first message on a connection, from a process as a ``member`` or for a ``relay``."""
    nonce = secrets.token_hex(16)
    return {"pullback": _VERSION, "role": role, "nonce": nonce, "proof": _proof(token, nonce, role), **more}


def _proves(message: dict[str, Any], token: str, nonce: Any, role: Any) -> bool:
    """Whether the sender of a message knows the token."""
    proof = message.get("proof")
    if not all(isinstance(text, str) for text in (proof, nonce, role)):
        return False
    right = _proof(token, nonce, role).encode()
    return hmac.compare_digest(proof.encode(errors="surrogatepass"), right)  # type: ignore[union-attr]


class _Loop:
    """An asyncio event loop that runs in a thread of its own."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

    def do(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine in the loop's thread, and wait for its result."""
        return self.start(work).result(timeout)

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine in the loop's thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)


async def _send(writer: asyncio.StreamWriter, **message: Any) -> None:
    if writer.is_closing():  # asyncio would log a warning
        return
    try:
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()
    except (OSError, RuntimeError):  # the other end is gone; the reader of the connection notices
        pass


async def _received(reader: asyncio.StreamReader, seconds: float) -> dict[str, Any] | None:
    """Read the next message; None at the end of the connection.

    Raises:
      TimeoutError: no message came in time.
      ValueError: the bytes are no message.
    """
    for tries_left in range(4, -1, -1):  # five short waits: one may time out early if this process was suspended
        try:
            line = await asyncio.wait_for(reader.readline(), seconds / 5)
            break
        except TimeoutError:
            if not tries_left:
                raise TimeoutError from None
        except OSError:
            return None
    if not line.endswith(b"\n"):
        return None
    try:
        message = json.loads(line)
    except RecursionError:
        raise ValueError from None
    if not isinstance(message, dict):
        raise ValueError
    return message


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes from ``reader`` to ``writer`` until one of the two connections ends."""
    try:
        while data := await reader.read(_LIMIT):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


async def _discard(reader: asyncio.StreamReader) -> None:
    """Read and drop bytes until the connection ends."""
    try:
        while await reader.read(_LIMIT):
            pass
    except OSError:
        pass


class _End:
    """The base class of :class:`Coordinator` and :class:`Link`: owns connections, and the thread that serves them."""

    sockets: set[asyncio.StreamWriter]

    def forget(self) -> None:
        """In a forked child, close the child's copies of the connections; the parent's connections stay open."""
        for writer in self.sockets:
            with contextlib.suppress(OSError):
                os.close(writer.get_extra_info("socket").fileno())


class _Member(NamedTuple):
    """A process that has joined: its connection, its name for messages, and the nonce of its first message."""

    writer: asyncio.StreamWriter
    name: str
    nonce: str


class Coordinator(_End):
    """The end at process 0 of the links of all processes.

    It waits until all processes have joined; later it informs the others of each process that is gone.

    Args:
      host, port: the address to listen at.
      processes: how many processes there are.
      timeout: seconds to wait for all processes to join.
      heartbeat: seconds of silence after which a process counts as gone.
      token: what all processes of the job know, and no other.

    Raises:
      DistributedError: the process cannot listen at the address.
    """

    def __init__(self, host: str, port: int, processes: int, timeout: float, heartbeat: float, token: str = "") -> None:
        self.processes = processes
        self.token = token
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.service_port = 0
        self.members: dict[int, _Member] = {}
        self.departed: set[int] = set()
        self.sockets = set()
        self._complete = False
        self._late = False
        self._tasks: list[Any] = []
        self._changed = threading.Condition()
        try:
            family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            self.listener = socket.socket(family[0], socket.SOCK_STREAM)
            systems.listen_alone(self.listener)
            self.listener.bind(family[4])
            self.listener.listen(_BACKLOG)
        except OSError as error:
            if hasattr(self, "listener"):
                self.listener.close()
            raise DistributedError(
                f"process 0 cannot listen at {host}:{port}: {error.strerror or error}. coordinator_address must be an "
                "address of the machine of process 0, with a free port (or pass coordinator_bind_address)."
            ) from None
        self.loop = _Loop("pullback-coordinator")
        self.server = self.loop.do(self._listen())

    async def _listen(self) -> asyncio.Server:
        asyncio.get_running_loop().call_later(self.timeout, self._too_late)
        return await asyncio.start_server(self._accept, sock=self.listener, limit=_LIMIT, backlog=_BACKLOG)

    def _too_late(self) -> None:
        self._late = True
        for member in self.members.values():
            self._tasks.append(asyncio.ensure_future(self._say_missing(member)))

    async def _say_missing(self, member: _Member) -> None:
        missing = [i for i in range(self.processes) if i not in self.members]
        if missing and not self._complete:
            await _send(member.writer, missing=missing)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sockets.add(writer)
        try:
            hello = await _received(reader, 30)
            if hello is None:
                return
            objection = self._objection(hello)
            if objection:
                await _send(writer, refused=objection)
            elif hello["role"] == "relay":
                await self._relay(reader, writer)
            else:
                await self._member(hello, reader, writer)
        except ValueError:
            await _send(writer, refused="it sent something else than a message of Pullback")
            with contextlib.suppress(OSError):  # closing the connection at once would take the answer back
                await asyncio.wait_for(_discard(reader), 1)
        except (OSError, asyncio.CancelledError):  # at the end of the loop; asyncio would log it
            pass
        finally:
            self.sockets.discard(writer)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self.service_port, limit=_LIMIT)
        self.sockets.add(forth)
        answers = asyncio.ensure_future(_pump(back, writer))
        await _pump(reader, forth)
        forth.close()
        self.sockets.discard(forth)
        await answers

    def _objection(self, hello: dict[str, Any]) -> str | None:
        """The reason to refuse the process that sent the first message ``hello``; None to let the process join."""
        number, count, role = hello.get("process"), hello.get("processes"), hello.get("role")
        if hello.get("pullback") != _VERSION:
            return "it uses another version of Pullback's protocol: all processes must run the same release"
        if role not in ("member", "relay") or not _proves(hello, self.token, hello.get("nonce"), role):
            return (
                f"it has another token than process 0: it belongs to another job on the same port, or {TOKEN} "
                f"differs between the processes"
            )
        if role == "relay":
            return None
        if count != self.processes:
            return f"num_processes is {count} here and {self.processes} in process 0: it must be the same everywhere"
        if type(number) is not int or not 0 <= number < self.processes:
            return f"process_id must be an integer from 0 to {self.processes - 1}, got {number!r}"
        if number in self.members:
            return f"process_id {number} is taken by {self.members[number].name}: each process needs a different number"
        if number in self.departed or self._complete:
            return f"all {self.processes} processes have already connected, so no other can take part"
        return None

    async def _member(self, hello: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = hello["process"]
        self.members[number] = _Member(writer, f"process {hello.get('pid')} on {hello.get('host')}", hello["nonce"])
        if len(self.members) == self.processes:
            self._complete = True
            for member in list(self.members.values()):
                await _send(member.writer, complete=True, proof=_proof(self.token, member.nonce, "coordinator"))
        elif self._late:
            await self._say_missing(self.members[number])
        gone, why = await self._until_gone(number, reader)
        said_bye = gone is None
        if self._complete:
            self.departed.add(number)
            # A process that was stopped may go on later, and is told too.
            await self._tell(number if gone is None else gone, why, number if said_bye else None)
        if said_bye:
            with contextlib.suppress(OSError, ValueError):
                await _received(reader, self.timeout)  # it ends the connection when it no longer needs process 0
        del self.members[number]
        with self._changed:
            self._changed.notify_all()

    async def _tell(self, gone: int, why: str, but: int | None) -> None:
        """Inform all processes, except ``but``, that a process is gone."""
        for other, member in list(self.members.items()):
            if other != but:
                await _send(member.writer, gone=gone, why=why)

    async def _tell_cut(self, number: int, why: str) -> None:
        """Inform the others that the collectives of a process fail, unless this is because another one is gone."""
        await asyncio.sleep(_SETTLING)
        if not self.departed:
            await self._tell(number, why, number)

    async def _until_gone(self, number: int, reader: asyncio.StreamReader) -> tuple[int | None, str]:
        """Wait until a process is gone, and return its number and the reason.

        The number is ``number``, or None if this process said goodbye, or 0 if it found that process 0 was gone.
        """
        pings = asyncio.ensure_future(self._ping(self.members[number].writer))
        try:
            while True:
                message = await _received(reader, self.heartbeat)
                if message is None:
                    return number, _ENDED
                if "bye" in message:
                    return None, str(message["bye"])
                if "lost" in message:
                    return 0, str(message["lost"])
                if "cut" in message:
                    self._tasks.append(asyncio.ensure_future(self._tell_cut(number, str(message["cut"]))))
        except TimeoutError:
            return number, f"it sent no heartbeat for {self.heartbeat:g} seconds"
        except ValueError:
            return number, "it sent an invalid message"
        finally:
            pings.cancel()

    async def _ping(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await asyncio.sleep(self.heartbeat / 5)
            await _send(writer, ping=1)

    def wait_for_the_others(self, seconds: float) -> list[int]:
        """Wait up to ``seconds`` until the other processes have left; return the numbers of those that have not."""
        with self._changed:
            self._changed.wait_for(lambda: not set(self.members) - {0}, seconds)
            return sorted(set(self.members) - {0})

    def stop(self) -> None:
        """Close all links."""

        async def close() -> None:
            self.server.close()
            for writer in list(self.sockets):
                writer.close()
            await asyncio.sleep(0)

        self.loop.do(close(), 5)
        self.loop.stop()


class Link(_End):
    """A process's connection to process 0.

    Args:
      host, port: the coordinator's address.
      process: the number of this process.
      processes: how many processes there are.
      timeout: seconds to try to reach process 0, and to wait for the others.
      heartbeat: seconds of silence after which process 0 counts as gone.
      token: what all processes of the job know, and no other.

    Attributes:
      gone: the processes that are gone, with the reasons.
      connected: whether process 0 answers; it does so for a while after it has announced that it leaves.
      relay_port: the port of the loopback interface that leads to the runtime's coordination service.
      address: this machine's address in the connection to process 0.

    Raises:
      DistributedTimeoutError: process 0 is out of reach, or others did not appear (a RuntimeError and TimeoutError).
      DistributedError: process 0 refuses this process (a RuntimeError).
    """

    def __init__(
        self, host: str, port: int, process: int, processes: int, timeout: float, heartbeat: float, token: str = ""
    ) -> None:
        self.host, self.port = host, port
        self.token = token
        self.process, self.processes = process, processes
        self.heartbeat = heartbeat
        self.gone: dict[int, str] = {}
        self._since: dict[int, float] = {}
        self._callers = Callers()
        self.connected = True
        self.sockets = set()
        self._leaving = False
        self._clients: set[Any] = set()
        self._tasks: list[Any] = []
        self._relays: set[Any] = set()  # the event loop has only weak references to its tasks
        self.loop = _Loop("pullback-link")
        try:
            self.loop.do(self._connect(time.monotonic() + timeout, timeout))
            self.relay_port: int = self.loop.do(self._open_relay())
        except BaseException:
            self.loop.stop()
            raise

    async def _connect(self, deadline: float, timeout: float) -> None:
        where = f"{self.host}:{self.port}"
        pause = 0.02
        while True:
            try:
                left = max(0.1, deadline - time.monotonic())
                reader, writer = await asyncio.wait_for(
                    asyncio.open_connection(self.host, self.port, limit=_LIMIT), left
                )
                break
            except OSError as error:  # TimeoutError is one
                if isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
                    raise DistributedError(
                        f"coordinator_address={where!r} names an unknown machine: {error.strerror}"
                    ) from None
                if time.monotonic() + pause > deadline:
                    why = getattr(error, "strerror", None) or str(error) or "no answer"
                    raise DistributedTimeoutError(
                        f"process {self.process} tried for {timeout:g} seconds to reach process 0 at {where}, the "
                        f"coordinator_address, without success: {why}. Is process 0 running, does it call "
                        f"initialize with the same address, and can this machine reach it? initialization_timeout "
                        f"sets how long to try."
                    ) from None
                await asyncio.sleep(pause)
                pause = min(2 * pause, 0.5)
        self.writer = writer
        self.sockets.add(writer)
        self.address = str(writer.get_extra_info("sockname")[0])
        names = {"host": socket.gethostname(), "pid": os.getpid()}
        hello = _hello(self.token, "member", process=self.process, processes=self.processes, **names)
        await _send(writer, **hello)
        self._tasks = [asyncio.ensure_future(self._ping())]
        try:
            await self._complete(reader, hello["nonce"], where, deadline, timeout)
        except BaseException:
            writer.close()
            raise
        self._tasks.append(asyncio.ensure_future(self._listen(reader)))

    async def _complete(
        self, reader: asyncio.StreamReader, nonce: str, where: str, deadline: float, timeout: float
    ) -> None:
        """Wait until all processes have joined. ``nonce`` is of this process's first message."""
        while True:
            try:
                left = deadline + 5 - time.monotonic()  # process 0 names the missing processes if it waits as long
                message = await _received(reader, left) if left > 0 else {"missing": []}
            except TimeoutError:
                message = {"missing": []}
            except ValueError:
                message = {"refused": "another program listens there instead of process 0"}
            if message is None:
                raise DistributedError(
                    f"process {self.process} reached {where}, the coordinator_address, and the connection was "
                    f"closed: process 0 failed meanwhile, the network closed it, or another program listens there."
                )
            if "refused" in message:
                raise DistributedError(
                    f"process {self.process} of {self.processes} cannot take part at {where}: {message['refused']}"
                )
            if "missing" in message:
                names = name_processes(message["missing"]) if message["missing"] else "an answer of process 0"
                raise DistributedTimeoutError(
                    f"process {self.process} waited {timeout:g} seconds for {names}, of num_processes="
                    f"{self.processes}, at {where}, without success: start all of them with the same "
                    "coordinator_address, or wait longer (initialization_timeout)."
                )
            if "complete" in message:
                if not _proves(message, self.token, nonce, "coordinator"):
                    raise DistributedError(
                        f"process {self.process} reached {where}, the coordinator_address, and the process there "
                        f"has another token than this job ({TOKEN}): it is another program, or belongs to another job."
                    )
                return

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        why = _ENDED
        try:
            while (message := await _received(reader, self.heartbeat)) is not None:
                if "gone" in message:
                    self._note(int(message["gone"]), str(message["why"]))
                    if message["gone"] == self.process:
                        self.connected = False
                        return
        except TimeoutError:
            why = f"it sent no heartbeat for {self.heartbeat:g} seconds"
        except ValueError:
            why = "it sent an invalid message"
        await self._lose(why, lost=why)  # process 0 was stopped, perhaps, and goes on later

    async def _lose(self, why: str, **last: str) -> None:
        """Note that process 0 is gone, and end the connection to it, with a ``last`` message if there is one."""
        self.connected = False
        if not self._leaving:
            self._note(0, why)
            if last:
                await _send(self.writer, **last)
            self.writer.close()

    def _note(self, process: int, why: str) -> None:
        if process not in self.gone:
            self._since[process] = time.monotonic()
            self.gone = {**self.gone, process: why}

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat / 5)
            await _send(self.writer, ping=1)

    async def _open_relay(self) -> int:
        self.relay = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, limit=_LIMIT)
        return int(self.relay.sockets[0].getsockname()[1])

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the bytes of the runtime's client to process 0, and the answers back.

        If process 0 is gone, the client's connection stays open. If only the connection that leads to the service was
        cut, what was sent may be lost, so that the link ends too: all processes learn that the two are separated.
        """
        self.sockets.add(writer)
        self._clients.add(writer)
        self._relays.add(asyncio.current_task())
        with contextlib.suppress(asyncio.CancelledError):  # at the end of the loop, and asyncio would log it
            await self._forward(reader, writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection(self.host, self.port, limit=_LIMIT)
        except OSError:  # process 0 is gone
            await _discard(reader)
        else:
            self.sockets.add(forth)
            await _send(forth, **_hello(self.token, "relay"))
            ways = [asyncio.ensure_future(way) for way in (_pump(reader, forth), _pump(back, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            forth.close()
            if not reader.at_eof():
                await asyncio.sleep(_SETTLING)  # if process 0 has left, the link knows why
                if self.connected:
                    await self._lose(_ENDED)
                await _discard(reader)
        writer.close()

    def leave(self, why: str) -> None:
        """Inform process 0 that this process leaves, and ``why``."""
        self._leaving = True
        with contextlib.suppress(TimeoutError):  # process 0 does not read
            self.loop.do(_send(self.writer, bye=why), 5)

    def stop(self, client_ended: bool) -> None:
        """Close the connections.

        Args:
          client_ended: whether the runtime's client has closed its connections; if not, they stay open until the
            process ends.
        """

        async def close() -> None:
            for task in self._tasks:
                task.cancel()
            self.relay.close()
            for writer in self.sockets:
                if not client_ended and writer in self._clients:
                    writer.get_extra_info("socket").dup().detach()  # a duplicate keeps the connection open
                writer.close()
            await asyncio.sleep(0)

        self._leaving = True
        self._callers.stop(2 * SLICE)  # a thread that returned from C++ while the interpreter ends would abort
        self.loop.do(close(), 5)
        self.loop.stop()

    # Waiting ---------------------------------------------------------------------------------------------------------

    def lost(self, what: str) -> ProcessLostError:
        """Return the error to raise for the operation ``what``, which fails because processes are gone."""
        return ProcessLostError(what, self.gone)

    def result(
        self,
        work: Callable[[], T],
        what: str,
        of: Collection[int] | None = None,
        grace: float = SHORT_GRACE,
        seconds: float = math.inf,
    ) -> T:
        """Call ``work``, which waits for other processes in C++, and return its result.

        Such a call cannot be interrupted. So it runs on another thread, which is abandoned if a process is gone.

        Args:
          work: the function to call.
          what: the name of the operation, for errors.
          of: the processes involved; None for all.
          grace: seconds to wait for the result after a process is gone: it may have done its share of the work before.
          seconds: the time that the call may take.

        Raises:
          ProcessLostError: a process is gone (a RuntimeError).
          DistributedTimeoutError: the call takes too long (a TimeoutError).
        """
        call = Call(work)
        self.begin(call)
        return self.finish(call, what, of, grace, seconds)

    def begin(self, call: Call[Any]) -> None:
        """Begin a ``call``, whose result :meth:`finish` returns."""
        self._callers.begin(call)

    def finish(
        self,
        call: Call[T],
        what: str,
        of: Collection[int] | None = None,
        grace: float = SHORT_GRACE,
        seconds: float = math.inf,
    ) -> T:
        """Wait for a ``call`` that has begun, as :meth:`result` does, and return its result."""
        self.wait(call.wait, what, of, grace, seconds)
        self._callers.give_back(call)
        return call.result()

    def wait(
        self,
        ready: Callable[[float], Any],
        what: str,
        of: Collection[int] | None = None,
        grace: float = GRACE,
        seconds: float = math.inf,
    ) -> None:
        """Wait for an operation of several processes.

        Args:
          ready: ``ready(seconds)`` waits at most ``seconds``, and returns whether the operation is done.
          what, of, seconds: as for :meth:`result`.
          grace: seconds to wait after a process is gone.

        Raises:
          ProcessLostError: a process is gone (a RuntimeError).
          DistributedTimeoutError: the operation takes too long (a TimeoutError).
        """
        begin = time.monotonic()
        while not ready(0.05):
            since = [t for i, t in list(self._since.items()) if self._takes_part(i, of)]
            now = time.monotonic()
            if since and now > max(begin, min(since)) + grace and not ready(0):
                raise self.lost(what)
            if now > begin + seconds:
                raise DistributedTimeoutError(
                    f"{what} took longer than {seconds:g} seconds: another process does not respond. Have all "
                    f"processes called initialize? initialization_timeout sets how long to wait."
                )

    def _takes_part(self, process: int, of: Collection[int] | None) -> bool:
        """Whether an operation of the processes ``of``, all if None, needs ``process``. It needs this one anyway."""
        return of is None or process in of or process == self.process

    def explained(self, error: Exception, what: str, of: Collection[int] | None = None) -> Exception:
        """Return a ProcessLostError for the operation ``what`` if a process that takes part is gone, else ``error``.

        If it is an error of gloo's, because a connection was cut, the other processes would wait for ever. They are
        informed, and so is the process at the other end, which informs this one in turn.

        ``of`` are the processes that take part; None for all.
        """
        _, gloo, message = str(error).partition("Gloo ")
        why = f"its collectives fail, as if a connection was cut: {gloo}{message}"[:300]
        if gloo and not self._leaving:
            self.loop.start(_send(self.writer, cut=why))
        end = time.monotonic() + GRACE  # the message may still be on its way
        while not any(self._takes_part(i, of) for i in self.gone):
            if time.monotonic() > end:
                if not gloo:
                    return error
                self._note(self.process, why)
            time.sleep(0.01)
        return self.lost(what)


def name_processes(numbers: Any) -> str:
    """Name processes in a message: ``process 2``, or ``processes 2 and 3``."""
    names = [str(i) for i in sorted(numbers)]
    if len(names) == 1:
        return f"process {names[0]}"
    return f"processes {', '.join(names[:-1])} and {names[-1]}"


def address(text: Any, argument: str) -> tuple[str, int]:
    """Parse an address such as ``localhost:1234`` or ``[::1]:1234`` to a host and a port.

    Raises:
      ArgumentError: the text is no address; the message names ``argument`` (a ValueError).
    """
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if (
        not colon
        or not port.isdecimal()
        or not 0 < int(port) < 65536
        or (not host and argument != "coordinator_bind_address")
    ):
        raise ArgumentError(f"{argument} must be a host and a port, such as '10.0.0.1:1234', got {text!r}")
    return host.strip("[]"), int(port)
