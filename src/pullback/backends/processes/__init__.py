"""Processes that compute together, that are forked, and that end."""
