"""``jax.extend.ifrt_programs``: Orbax imports it, to run programs of a runtime of Google's (Pathways)."""

from pullback.backends.compiler import client as _client
from pullback.core.faces import face as _face

_face(globals(), made={"ifrt_programs": lambda: _client.library().jax.ifrt_programs})
