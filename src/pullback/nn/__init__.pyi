# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.nn import initializers as initializers
from pullback.nn.activations import celu as celu
from pullback.nn.activations import elu as elu
from pullback.nn.activations import gelu as gelu
from pullback.nn.activations import glu as glu
from pullback.nn.activations import hard_sigmoid as hard_sigmoid
from pullback.nn.activations import hard_silu as hard_silu
from pullback.nn.activations import hard_swish as hard_swish
from pullback.nn.activations import hard_tanh as hard_tanh
from pullback.nn.activations import identity as identity
from pullback.nn.activations import leaky_relu as leaky_relu
from pullback.nn.activations import log1mexp as log1mexp
from pullback.nn.activations import log_sigmoid as log_sigmoid
from pullback.nn.activations import mish as mish
from pullback.nn.activations import relu as relu
from pullback.nn.activations import relu6 as relu6
from pullback.nn.activations import selu as selu
from pullback.nn.activations import sigmoid as sigmoid
from pullback.nn.activations import silu as silu
from pullback.nn.activations import soft_sign as soft_sign
from pullback.nn.activations import softplus as softplus
from pullback.nn.activations import sparse_plus as sparse_plus
from pullback.nn.activations import sparse_sigmoid as sparse_sigmoid
from pullback.nn.activations import squareplus as squareplus
from pullback.nn.activations import swish as swish
from pullback.nn.activations import tanh as tanh
from pullback.nn.attention import dot_product_attention as dot_product_attention
from pullback.nn.normalized import log_softmax as log_softmax
from pullback.nn.normalized import logmeanexp as logmeanexp
from pullback.nn.normalized import logsumexp as logsumexp
from pullback.nn.normalized import one_hot as one_hot
from pullback.nn.normalized import softmax as softmax
from pullback.nn.normalized import standardize as standardize
from pullback.nn.pooling import avg_pool as avg_pool
from pullback.nn.pooling import max_pool as max_pool
from pullback.nn.pooling import min_pool as min_pool
from pullback.nn.scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
from pullback.nn.scaled import scaled_dot_general as scaled_dot_general
from pullback.nn.scaled import scaled_matmul as scaled_matmul

__all__ = [
    "avg_pool", "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp",
    "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "max_pool", "min_pool", "mish", "one_hot", "relu",
    "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]
