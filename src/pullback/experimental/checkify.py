"""Checks within transformed functions, which return failures as values.

>>> import pullback.numpy as jnp
>>> from pullback import jit
>>> from pullback.experimental import checkify
>>> def f(x, i):
...     checkify.check(i >= 0, "the index must not be negative, got {i}", i=i)
...     return jnp.sin(x[i])
>>> errors = checkify.user_checks | checkify.index_checks | checkify.nan_checks
>>> err, out = jit(checkify.checkify(f, errors=errors))(jnp.ones(3), 5)
>>> print(err.get().splitlines()[0])
out-of-bounds indexing for array of shape (3,): index 5 is out of bounds for axis 0 with size 3.
"""

from pullback.core.faces import face as _face

_face(
    globals(),
    {
        "pullback.core.errors": (
            "DivisionCheckError FailedCheckError IndexCheckError JaxException=CheckError JaxRuntimeError=CheckError "
            "NanCheckError"
        ),
        "pullback.transforms.checks.check": (
            "Error ErrorCategory all_checks automatic_checks check check_error checkify debug_check div_checks "
            "float_checks index_checks init_error nan_checks user_checks"
        ),
    },
)
