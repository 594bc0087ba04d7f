"""Floor 1, the language: types, trees, primitives, traces, jaxprs. It knows no operation."""
