"""Functions of SciPy on Pullback's arrays, with SciPy's signatures where JAX has them; all can be transformed."""

from pullback.core.faces import face as _face

_face(
    globals(),
    modules="cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats",
)
