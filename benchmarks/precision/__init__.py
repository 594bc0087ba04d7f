"""The time of ``analysis.precision``, in multiples of an eager run of the same function."""
