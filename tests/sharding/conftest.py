"""The files of cases are for a process with eight devices, which ``test_over_devices`` starts."""

import pullback

collect_ignore_glob = ["cases_*.py"] if pullback.device_count() < 8 else []
