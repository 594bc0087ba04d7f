"""Functions whose partitioning over devices users define."""

from pullback.core.faces import face
from pullback.spmd.custom_partitioning import custom_partitioning
from pullback.spmd.sharding_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]
face(globals())
