"""Programs within programs, and operations that are evaluated as compiled programs."""
