"""The releases of jaxlib that are accepted, which pyproject.toml states too."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from pullback.backends.compiler import client
from pullback.errors import BackendError
from tests.helpers import ROOT


def _named(requirements: list[str], name: str) -> list[Requirement]:
    return [found for found in map(Requirement, requirements) if found.name == name]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
(JAXLIB,) = _named(PROJECT["dependencies"], "jaxlib")
TESTED = re.findall(r"^jaxlib==([\d.]+)", (ROOT / "requirements" / "runtime.in").read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(
    ("version", "age"),
    [("0.4.38", "old"), ("0.10.1", "old"), ("0.13.0", "new"), ("0.13.0.dev20260101", "new"), ("1.0", "new")],
)
def test_other_releases_are_refused(version: str, age: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxlib.version.__version__", version)
    with pytest.raises(BackendError) as caught:
        client.library.__wrapped__()
    assert str(caught.value) == (
        f"jaxlib {version} is too {age} for this release of Pullback: pip install 'jaxlib>=0.10.2,<0.13'"
    )
    assert not JAXLIB.specifier.contains(version)


@pytest.mark.parametrize("version", [*TESTED, "0.11.0", "0.12.3"])
def test_releases_within_the_bounds_are_accepted(version: str) -> None:
    client._check_release(version)
    assert JAXLIB.specifier.contains(version)


def test_the_bounds_are_those_of_the_project() -> None:
    oldest, limit = (".".join(map(str, numbers)) for numbers in client.RELEASES)
    assert {str(bound) for bound in JAXLIB.specifier} == {f">={oldest}", f"<{limit}"}


def test_the_plug_in_and_jaxlib_are_of_one_release() -> None:
    cuda = PROJECT["optional-dependencies"]["cuda"]
    pins = [
        {(str(found.specifier), str(found.marker)) for found in _named(cuda, name)}
        for name in ("jaxlib", "jax-cuda13-plugin")
    ]
    assert pins[0] == pins[1]
    assert {version.removeprefix("==") for version, _ in pins[0]} == set(TESTED)
