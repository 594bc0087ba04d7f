"""The place of this process in an MPI job, asked from mpi4py."""

from __future__ import annotations

import socket
import sys
from typing import Any

from pullback.core.errors import ArgumentError


def loaded() -> bool:
    """Whether the program uses mpi4py in a job of several processes. It is not imported, since that starts MPI."""
    module: Any = sys.modules.get("mpi4py.MPI")
    active = module is not None and module.Is_initialized() and not module.Is_finalized()
    return active and module.COMM_WORLD.Get_size() > 1


def _world() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ArgumentError(f"cluster='mpi4py' needs the package mpi4py, which cannot be imported: {error}") from None
    return MPI


def number() -> int:
    """Return the number of this process."""
    return int(_world().COMM_WORLD.Get_rank())


def count() -> int:
    """Return how many processes there are."""
    return int(_world().COMM_WORLD.Get_size())


def local() -> tuple[int, int]:
    """Return the number of this process on its machine, and how many processes run there. All must call this."""
    mpi = _world()
    machine = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    found = int(machine.Get_rank()), int(machine.Get_size())
    machine.Free()
    return found


def address() -> str:
    """Return the host and a free port of process 0, which tells all others. All processes must call this."""
    one_machine = local()[1] == count()
    where = None
    if number() == 0:
        with socket.socket() as free:
            free.bind(("", 0))
            where = f"{'localhost' if one_machine else socket.gethostname()}:{free.getsockname()[1]}"
    return str(_world().COMM_WORLD.bcast(where, root=0))
