"""``jax._src.dispatch``: Equinox waits for what programs do beside computing before the process ends."""

from pullback.transforms.programs.callbacks import effects_barrier


def wait_for_tokens() -> None:
    """Wait until all that was asked of programs with effects is done.

    >>> wait_for_tokens()
    """
    effects_barrier()
