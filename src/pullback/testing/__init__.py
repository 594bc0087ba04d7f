"""The modules behind ``pullback.test_util``: numerical differences, and the check of derivative rules."""
