"""Floor 4, the transformations: one interpreter a file, and what is built on them."""
