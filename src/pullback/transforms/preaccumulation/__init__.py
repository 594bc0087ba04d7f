"""Preaccumulation: computing local Jacobians of regions of programs, using them in reverse mode, choosing regions."""
