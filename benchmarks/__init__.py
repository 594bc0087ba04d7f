"""Pullback's time against that of JAX, PyTorch (``torch.func``) and autograd: ``python -m benchmarks``.

``workloads`` is the table of what is measured; ``problems`` its mathematics, written once for all libraries;
``libraries`` what each library calls things. ``measure`` runs one ``worker`` process for each library and
workload; ``report`` and ``chart`` show the result.
"""
