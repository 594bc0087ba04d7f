"""Checkpoints of a training or a simulation on disk: whole or not there, written in the background, restored anywhere.

A :class:`Checkpoints` object keeps the newest steps in a folder. Arrays over several devices are written by the
processes that hold their shards, and restored with any sharding, on any number of devices and processes.
"""

from pullback.checkpointing.checkpoints import Checkpoints as Checkpoints
from pullback.core.faces import face

__all__ = ["Checkpoints"]
face(globals())
