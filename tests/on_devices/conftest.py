"""Tests that need eight devices, collected in the process that ``tests/test_on_devices.py`` starts."""

import os

collect_ignore_glob = [] if os.environ.get("PULLBACK_TEST_DEVICES") else ["test_*.py"]
