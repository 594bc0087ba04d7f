"""``jax._src.distributed``: the number of this process and a client to reach the others, for Orbax."""

from typing import Any

from pullback.backends.processes import distributed as _distributed


class State:
    """The current state of this process among several; see ``pullback.distributed``."""

    __slots__ = ()

    @property
    def client(self) -> Any:
        """The runtime's client of keys, values and barriers; None if this process is alone."""
        member = _distributed.here.member
        return None if member is None else member.store.common  # type: ignore[attr-defined]

    @property
    def process_id(self) -> int:
        """The number of this process, 0 if it is alone."""
        member = _distributed.here.member
        return 0 if member is None else member.link.process

    @property
    def num_processes(self) -> int:
        """The number of processes, 1 if this one is alone."""
        member = _distributed.here.member
        return 1 if member is None else member.link.processes

    @property
    def service(self) -> Any:
        """The runtime's service in process 0; None in the others."""
        member = _distributed.here.member
        return None if member is None else member.service

    @property
    def preemption_sync_manager(self) -> None:
        """None: preemption is not announced."""


global_state = State()
