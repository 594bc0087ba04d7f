"""Floor 2, where programs run: eagerly with NumPy, compiled on CPUs and GPUs, on one process or several."""

from pullback.backends.host.memory import keep_freed_pages

keep_freed_pages()
