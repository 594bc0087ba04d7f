"""matplotlib draws the same pixels for our arrays as for NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import pullback.numpy as jnp

mpl.use("Agg")
import matplotlib.pyplot as plt

_rng = np.random.default_rng(0)
VALUES: dict[str, np.ndarray[Any, Any]] = {
    "m": _rng.normal(size=(4, 3)).astype("f"),
    "s": _rng.normal(size=(4, 4)).astype("f"),
    "v": _rng.normal(size=12).astype("f"),
    "p": np.sort(_rng.uniform(0.1, 0.9, 12)).astype("f"),
    "i": _rng.integers(0, 5, 12).astype("i4"),
    "b": _rng.normal(size=12) > 0,
}
OURS = {name: jnp.asarray(value) for name, value in VALUES.items()}

DRAWINGS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "plot": lambda ax, a: ax.plot(a["p"], a["v"]),
    "scatter": lambda ax, a: ax.scatter(a["p"], a["v"], c=a["v"], s=20 * a["p"]),
    "bar": lambda ax, a: ax.bar(a["p"], a["v"]),
    "barh": lambda ax, a: ax.barh(a["i"], a["v"]),
    "errorbar": lambda ax, a: ax.errorbar(a["p"], a["v"], yerr=a["p"]),
    "fill_between": lambda ax, a: ax.fill_between(a["p"], a["v"], 0, where=a["b"]),
    "hist": lambda ax, a: ax.hist(a["v"], bins=3),
    "hist2d": lambda ax, a: ax.hist2d(a["v"], a["p"], bins=3),
    "boxplot": lambda ax, a: ax.boxplot(a["m"]),
    "imshow": lambda ax, a: ax.imshow(a["m"]),
    "contour": lambda ax, a: ax.contour(a["s"]),
    "pcolormesh": lambda ax, a: ax.pcolormesh(a["m"]),
    "quiver": lambda ax, a: ax.quiver(a["p"], a["v"], a["v"], a["p"]),
    "step": lambda ax, a: ax.step(a["p"], a["v"]),
    "stem": lambda ax, a: ax.stem(a["p"], a["v"]),
    "stackplot": lambda ax, a: ax.stackplot(a["p"], a["p"], a["p"]),
    "pie": lambda ax, a: ax.pie(a["p"]),
    "axhline": lambda ax, a: ax.axhline(a["v"][0]),
    "limits": lambda ax, a: ax.set_xlim(a["p"][0], a["p"][-1]),
    "ticks": lambda ax, a: ax.set_xticks(a["p"]),
    "text": lambda ax, a: ax.text(a["p"][0], a["v"][0], "here"),
    "loglog": lambda ax, a: ax.loglog(a["p"], a["p"]),
    "violinplot": lambda ax, a: ax.violinplot(a["m"]),
    "eventplot": lambda ax, a: ax.eventplot(a["v"]),
}  # fmt: skip


def _pixels(draw: Callable[..., Any], values: dict[str, Any], **options: Any) -> np.ndarray[Any, Any]:
    figure = plt.figure(figsize=(2, 2), dpi=40)
    try:
        draw(figure.add_subplot(**options), values)
        figure.canvas.draw()
        return np.array(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    finally:
        plt.close(figure)


@pytest.mark.parametrize("name", DRAWINGS)
def test_matplotlib(name: str) -> None:
    np.testing.assert_array_equal(_pixels(DRAWINGS[name], OURS), _pixels(DRAWINGS[name], VALUES))


def test_matplotlib_in_three_dimensions() -> None:
    def surface(ax: Any, a: dict[str, Any]) -> None:
        x, y = np.meshgrid(a["v"][:4], a["v"][4:8])
        ax.plot_surface(x, y, a["s"])
        ax.scatter(a["v"], a["p"], a["v"])

    def ours(ax: Any, a: dict[str, Any]) -> None:
        x, y = jnp.meshgrid(a["v"][:4], a["v"][4:8])
        ax.plot_surface(x, y, a["s"])
        ax.scatter(a["v"], a["p"], a["v"])

    expected = _pixels(surface, VALUES, projection="3d")
    np.testing.assert_array_equal(_pixels(ours, OURS, projection="3d"), expected)
