"""The references to an object that counting it adds, in which versions of Python differ.

Memory is used again where nobody else refers to it. A variable refers to its object; in addition, up to Python 3.13, so
do the call of :func:`sys.getrefcount` and the parameter of a function. From Python 3.14 on both borrow the reference of
the variable. So the numbers are counted here, in functions of the same form as those that use them.
"""

from __future__ import annotations

from sys import getrefcount


def _of_a_variable() -> int:
    x = object()
    return getrefcount(x)


def _of_a_parameter() -> int:
    x = object()
    return _count(x)


def _count(x: object) -> int:
    return getrefcount(x)


OF_VARIABLE = _of_a_variable()
"""The count of an object to which one variable refers, in the function that counts."""
OF_PARAMETER = _of_a_parameter()
"""The count of an object to which one variable refers, and which is passed to a function that counts."""
