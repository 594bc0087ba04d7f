"""Floor 3, the operations: one family in each file, each operation next to all of its rules."""
