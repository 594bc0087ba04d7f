"""Sparse derivatives: where they are not zero, and how few products compute them.

* ``boolean``: matrices of booleans; ``pattern``: those that users see, ``pictures``: drawings of them.
* ``dependence``: the interpreter that finds patterns; ``rules``, ``indexed``, ``programs``: its rules.
* ``colouring``, ``greedy``, ``lattice``, ``bidirectional``, ``symmetric``: which columns and rows share a product.
* ``products``, ``reading``: the products, of which only the elements that are wanted are computed.
* ``jacobian``, ``hessian``: the functions of users.
"""
