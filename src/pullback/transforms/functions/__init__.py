"""Functions of the user: their arguments, flat, and their way into this library and out."""
