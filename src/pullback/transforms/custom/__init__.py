"""Functions with custom rules: for derivatives, batching and transposition."""
