"""Functions that are traced once, compiled, and run."""
