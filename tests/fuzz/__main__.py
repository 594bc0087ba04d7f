"""``python -m tests.fuzz --minutes 10 --seed 0``: random programs, as many as the time allows; see ``tests/fuzz``."""

from __future__ import annotations

import os

# Before the runtime starts: eight virtual devices, and little optimisation.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=8")
os.environ.setdefault("PULLBACK_TIERED", "off")

import sys

from tests.fuzz.session import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
