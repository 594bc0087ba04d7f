"""The cases need two devices: they are collected in the process that ``test_elsewhere.py`` starts."""

import os

collect_ignore_glob = [] if os.environ.get("PULLBACK_NUM_CPU_DEVICES") == "2" else ["cases_*.py"]
