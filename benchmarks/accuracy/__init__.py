"""How far results are from the exact ones: every operation on elements, and its derivatives, against mpmath.

``python -m benchmarks.accuracy`` (or ``make accuracy``) writes ``docs/accuracy.md``.
"""
