"""``jax._src.lib``: what JAX takes from ``jaxlib``."""

from types import SimpleNamespace as _Namespace

from pullback.backends.compiler import client as _client
from pullback.core.faces import face as _face
from pullback.transforms.jit.jit import JitFunction as _JitFunction

_jax = _Namespace(PjitFunction=_JitFunction)
"""The class of compiled functions, for Qwix."""

_face(
    globals(),
    made={
        "jaxlib_extension_version": lambda: _client.library().xla_client._version,
        "xla_client": lambda: _client.library().xla_client,
    },
    modules="jax_mlir_ext mlir",
)
