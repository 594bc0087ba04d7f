"""Debugging aids: checks for NaNs and leaks, explanations of cache misses, named scopes."""
