"""``checkify``: checks within transformed functions, whose failures are results."""
