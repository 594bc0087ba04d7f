"""``jax.experimental.sparse``: a category of warnings, which programs name to filter them."""

from pullback.core.errors import SparseEfficiencyWarning


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """The category of JAX's warnings about matrices for which cuSPARSE has no fast product; Pullback gives none.

    >>> import warnings
    >>> from pullback.compat.extras.experimental.sparse import CuSparseEfficiencyWarning
    >>> warnings.simplefilter("ignore", CuSparseEfficiencyWarning)
    """


__all__ = ["CuSparseEfficiencyWarning"]
