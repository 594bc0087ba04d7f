"""``jax._src.distributed``: Orbax asks which process this is among several, and speaks to the others."""

from typing import Any

from pullback.backends.processes import distributed as _distributed


class State:
    """This process among several, as it is at present: see ``pullback.distributed``."""

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
        """How many processes there are, 1 if this one is alone."""
        member = _distributed.here.member
        return 1 if member is None else member.link.processes

    @property
    def service(self) -> Any:
        """The runtime's service, which process 0 has; None elsewhere."""
        member = _distributed.here.member
        return None if member is None else member.service

    @property
    def preemption_sync_manager(self) -> None:
        """None: nobody announces that this process is about to be ended."""


global_state = State()
