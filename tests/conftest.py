"""What all tests share: every jaxpr is checked, and random examples are the same in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from pullback.core.config import config

config.update("enable_checks", True)

settings.register_profile(
    "pullback",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pullback")
