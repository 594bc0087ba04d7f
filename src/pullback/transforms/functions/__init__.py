"""User functions: flattening their arguments and results, and the boundary of the public API."""
