"""The resident memory of this process, and what its samples say about a leak."""

from __future__ import annotations

import gc
import os
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


def is_measurable() -> bool:
    """Return whether the system says how much memory of a process is resident."""
    return sys.platform == "linux"


def resident() -> int:
    """Collect garbage; return the resident memory of this process in bytes."""
    gc.collect()
    with open("/proc/self/statm", "rb", buffering=0) as file:  # leaves no block behind, as a Path does
        return int(file.read(100).split()[1]) * _PAGE


def peak() -> int:
    """Return the largest resident memory that this process has had, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def blocks() -> int:
    """Return the number of blocks that Python has allocated: one or two for each live object that is small."""
    return sys.getallocatedblocks()


# A long run -----------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """What was measured at one moment of a run: seconds since its start, bytes, allocated blocks, steps so far."""

    seconds: float
    resident: int
    blocks: int
    steps: int


FLAT = 0.01
"""The growth, from the second quarter of a run to the last one, up to which its memory counts as flat."""


def growth(samples: Sequence[Sample]) -> float:
    """Return by how much the mean of the last quarter is above that of the second one, as a share of the latter.

    There are four samples or more. The first quarter is left out: caches fill, and the allocators take what they will
    use again.
    """
    sizes, count = [sample.resident for sample in samples], len(samples)
    return fmean(sizes[3 * count // 4 :]) / fmean(sizes[count // 4 : count // 2]) - 1


# Many calls of one kind -----------------------------------------------------------------------------------------------


MOST_PERCENT = 1.0
MOST_BYTES = 16.0
MOST_BLOCKS = 0.1
"""What a kind of calls may grow by in the second half of its calls without being called a leak: memory by one percent
or 16 bytes a call, whichever is more, and allocated blocks by one in ten calls. Resident memory grows by megabytes:
allocators keep pieces of what they took. Blocks are exact, and show the smallest leak of Python objects."""

PIECES = 16
"""Into how many pieces the calls are divided; memory is measured after each."""


class Growth(NamedTuple):
    """Memory and allocated blocks before the first call, and after each piece of the calls.

    Only the second half counts: caches fill in the first, and the allocators take what they will use again.
    """

    calls: int
    resident: Sequence[int]
    blocks: Sequence[int]

    @property
    def percent(self) -> float:
        """By how much memory grew in the second half, in percent of what it was before."""
        return 100 * (self.resident[-1] / self.resident[PIECES // 2] - 1)

    @property
    def bytes_per_call(self) -> float:
        """By how much memory grew in the second half, for each call."""
        return (self.resident[-1] - self.resident[PIECES // 2]) / (self.calls / 2)

    @property
    def blocks_per_call(self) -> float:
        """By how much the allocated blocks grew in the second half, for each call: in all, or in the median piece.

        It is the less of the two: what happens once, such as a table that doubles, is not in the median, and what
        fills up and is emptied again is not in the whole.
        """
        half = self.blocks[PIECES // 2 :]
        piece = median(after - before for before, after in pairwise(half)) / (self.calls / PIECES)
        return min(piece, (half[-1] - half[0]) / (self.calls / 2), key=abs)

    @property
    def leaks(self) -> bool:
        """Whether the calls leave something behind."""
        grows = self.percent > MOST_PERCENT and self.bytes_per_call > MOST_BYTES
        return grows or self.blocks_per_call > MOST_BLOCKS


def measured(call: Callable[[int], object], calls: int, warm: int) -> Growth:
    """Make calls to warm up, and then ``calls`` calls; return what grew.

    Args:
      call: makes call ``i``.
      calls: how many calls are measured.
      warm: how many are made before.
    """
    sizes, blocks_ = array("q", bytes(8 * (PIECES + 1))), array("q", bytes(8 * (PIECES + 1)))  # grow by no object
    done = 0
    for piece in range(PIECES + 1):
        end = warm + calls * piece // PIECES
        while done < end:
            call(done)
            done += 1
        sizes[piece] = resident()
        blocks_[piece] = blocks()
    return Growth(calls, sizes, blocks_)
