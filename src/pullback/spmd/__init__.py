"""Programs that run on several devices, each on its shards of the arrays: ``shard_map``, ``pmap`` and others."""
