"""``jax.interpreters.pxla``: the current mesh, as EasyDeL and Tunix ask for it."""

from pullback.backends.devices import meshes as _meshes


class _Env:
    __slots__ = ()

    @property
    def physical_mesh(self) -> _meshes.Mesh:
        """The current mesh of this thread; a mesh without axes if none is set."""
        return _meshes.get_mesh()


class ThreadResources:
    """What the current thread runs on.

    >>> from pullback.compat.extras.interpreters.pxla import thread_resources
    >>> thread_resources.env.physical_mesh.empty
    True
    """

    __slots__ = ("env",)

    def __init__(self) -> None:
        self.env = _Env()


thread_resources = ThreadResources()

__all__ = ["ThreadResources", "thread_resources"]
