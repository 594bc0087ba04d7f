"""``jax._src.image.scale``: the methods of ``jax.image`` and their kernels, which torchax evaluates."""

from collections.abc import Callable
from typing import Any

import pullback.numpy as pnp
from pullback import image as _image
from pullback.image import ResizeMethod as ResizeMethod
from pullback.image import resize as resize
from pullback.image import scale_and_translate as scale_and_translate


def _kernel(method: ResizeMethod) -> Callable[[Any], Any]:
    return lambda x: _image._KERNELS[method](pnp, abs(x))


_kernels = {method: _kernel(method) for method in _image._KERNELS}
"""For each method of interpolation the weight of an element by its distance."""
