"""What a program costs before it runs: which devices exchange how many bytes, and how much memory each needs."""

from pullback.analysis.collectives import Collective as Collective
from pullback.analysis.collectives import collectives as collectives
from pullback.analysis.costs import Cost as Cost
from pullback.analysis.costs import cost as cost
from pullback.analysis.memory import MemoryProfile as MemoryProfile
from pullback.analysis.memory import MemoryTimeline as MemoryTimeline
from pullback.analysis.memory import memory_profile as memory_profile
from pullback.analysis.plans import Choice as Choice
from pullback.analysis.plans import MemoryPlan as MemoryPlan
from pullback.analysis.plans import plan_memory as plan_memory
from pullback.core.faces import face

__all__ = [
    "Choice",
    "Collective",
    "Cost",
    "MemoryPlan",
    "MemoryProfile",
    "MemoryTimeline",
    "collectives",
    "cost",
    "memory_profile",
    "plan_memory",
]
face(globals())
