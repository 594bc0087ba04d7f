"""Floor 2, where programs run: on the host with NumPy."""
