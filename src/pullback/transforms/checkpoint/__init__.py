"""``checkpoint``: trading memory of reverse mode for recomputation."""
