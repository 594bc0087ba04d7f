"""``jax._src.dispatch``: Equinox waits for the effects of programs before the process ends."""

from pullback.transforms.programs.callbacks import effects_barrier


def wait_for_tokens() -> None:
    """Wait until all programs with effects have finished.

    >>> from pullback.compat.extras._src.dispatch import wait_for_tokens
    >>> wait_for_tokens()
    """
    effects_barrier()
