"""Programs as StableHLO text: types, operations, functions and modules, and workarounds for faults of the compiler."""
