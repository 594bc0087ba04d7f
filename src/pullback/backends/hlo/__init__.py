"""Programs as text: StableHLO, its types, operations, functions and modules, and what the compiler gets wrong."""
