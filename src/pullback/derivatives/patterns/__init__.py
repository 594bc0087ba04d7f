"""Sparse derivatives: sparsity detection, colouring, and compressed products.

* ``boolean``: boolean matrices; ``pattern``: the public class of patterns; ``pictures``: drawings of patterns.
* ``programs``: the interpreter that finds patterns; ``dependence``, ``rules``, ``indexed``: its rules.
* ``colouring``, ``greedy``, ``lattice``, ``bidirectional``, ``symmetric``: columns and rows that share a product.
* ``products``, ``reading``: the compressed products, of which only the wanted elements are computed.
* ``jacobian``, ``hessian``: the public functions.
"""
