"""Derivatives and batches of functions."""
