"""Functions for neural networks: activations, softmax and its kin, one-hot encoding, and initial weights.

They are plain functions of ``pullback.numpy``'s arrays, which every transformation maps.
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        ".activations": (
            "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid "
            "mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh"
        ),
        ".attention": "dot_product_attention",
        ".normalized": "log_softmax logmeanexp logsumexp one_hot softmax standardize",
        ".pooling": "avg_pool max_pool min_pool",
        ".scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    },
    modules="initializers",  # which needs random numbers
)
