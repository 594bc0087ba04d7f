"""Functions of which reverse mode keeps little."""
