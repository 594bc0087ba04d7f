"""Floor 4, the transformations: an interpreter per file, and the functions built on these."""
