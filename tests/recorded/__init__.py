"""What JAX returns for ten cases of each operation, by families; ``python -m tests.recorded`` writes them."""
