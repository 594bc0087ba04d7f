"""Operations on the host, with NumPy and SciPy, by one thread or by several."""
