"""What ``pullback.test_util`` is made of: differences, and the check of derivative rules."""
