"""Sparse derivatives: where they are not zero, and how few products compute them.

* ``boolean``: matrices of booleans; ``pattern``: those that users see, ``pictures``: drawings of them.
* ``dependence``: the interpreter that finds patterns; ``rules``, ``indexed``, ``programs``: its rules.
* ``colouring``, ``lattice``, ``symmetric``: which columns and rows share a product, and how elements are read back.
* ``jacobian``, ``hessian``: the functions of users.
"""
