"""Programs that run on many devices at once, each on its part of the arrays: ``shard_map`` and ``pmap``."""
