"""Differential equations: error against work, beside SciPy's and Diffrax's solvers."""
