"""Linear algebra: products of matrices, decompositions, and systems of equations."""
