"""What programs cost and how exact they are: exchanges between devices, memory, and the true digits of results."""

from pullback.analysis.collectives import Collective as Collective
from pullback.analysis.collectives import collectives as collectives
from pullback.analysis.costs import Cost as Cost
from pullback.analysis.costs import cost as cost
from pullback.analysis.line_costs import LineCosts as LineCosts
from pullback.analysis.memory import MemoryProfile as MemoryProfile
from pullback.analysis.memory import MemoryTimeline as MemoryTimeline
from pullback.analysis.memory import memory_profile as memory_profile
from pullback.analysis.mixing import MixedPlan as MixedPlan
from pullback.analysis.mixing import mixed_precision as mixed_precision
from pullback.analysis.plans import Choice as Choice
from pullback.analysis.plans import MemoryPlan as MemoryPlan
from pullback.analysis.plans import plan_memory as plan_memory
from pullback.analysis.true_digits import Loss as Loss
from pullback.analysis.true_digits import Precision as Precision
from pullback.analysis.true_digits import ResultDigits as ResultDigits
from pullback.analysis.true_digits import precision as precision
from pullback.analysis.work import Work as Work
from pullback.core.faces import face

__all__ = [
    "Choice",
    "Collective",
    "Cost",
    "LineCosts",
    "Loss",
    "MemoryPlan",
    "MemoryProfile",
    "MemoryTimeline",
    "MixedPlan",
    "Precision",
    "ResultDigits",
    "Work",
    "collectives",
    "cost",
    "memory_profile",
    "mixed_precision",
    "plan_memory",
    "precision",
]
face(globals())
