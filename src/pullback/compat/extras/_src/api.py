"""``jax._src.api``: the transformations, as ``jax`` has them. e3nn-jax looks here for a helper of earlier releases."""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback": (
            "ShapeDtypeStruct block_until_ready clear_caches copy_to_host_async device_get device_put disable_jit "
            "effects_barrier eval_shape fwd_and_bwd grad hessian jacfwd jacobian jacrev jit jvp linear_transpose "
            "linearize live_arrays make_jaxpr named_call named_scope pmap value_and_grad vjp vmap"
        ),
        "pullback.ad": "DidntWant DontWant GradRef GradValue",
    },
)
