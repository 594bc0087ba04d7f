"""The functions that scientists ask for, beside SciPy's: errors, derivatives, batches, compiled programs, and times."""
