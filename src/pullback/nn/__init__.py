"""Functions for neural networks: activations, softmax and its kin, one-hot encoding, and initial weights.

They are plain functions of ``pullback.numpy``'s arrays, which every transformation maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.core.faces import face
from pullback.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from pullback.nn.attention import dot_product_attention
from pullback.nn.normalized import log_softmax, logmeanexp, logsumexp, one_hot, softmax, standardize
from pullback.nn.pooling import avg_pool, max_pool, min_pool
from pullback.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

if TYPE_CHECKING:
    from pullback.nn import initializers as initializers

__all__ = [
    "avg_pool", "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp",
    "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "max_pool", "min_pool", "mish", "one_hot", "relu",
    "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

face(globals(), modules="initializers")  # which needs random numbers
