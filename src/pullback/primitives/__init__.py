"""Floor 3, the operations: one family a file, each operation with all its rules beside it."""
