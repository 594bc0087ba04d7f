"""Generators of random bits, and samples by rejection."""
