"""Tests that need eight devices: they are collected in a process that has them, which ``tests/test_on_devices.py`` starts."""

import os

collect_ignore_glob = [] if os.environ.get("PULLBACK_TEST_DEVICES") else ["test_*.py"]
