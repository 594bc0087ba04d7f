"""Floor 2, where programs run: on the host with NumPy."""

from pullback.backends.host.memory import keep_freed_pages

keep_freed_pages()
