"""Convolutions, windows that slide, filters and transforms."""
