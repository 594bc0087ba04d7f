"""The examples that stand beside the cookbook run as a newcomer runs them, and agree with their own figures."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

EXAMPLES = ROOT / "examples"


def run(name: str, *args: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *args]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_newton_sqrt() -> None:
    assert "21 of 21 figures agree" in run("newton_sqrt.py")


@pytest.mark.slow
def test_string_density() -> None:
    assert "3 of 3 comparisons agree" in run("string_density.py")


def test_boundary_value(tmp_path: Path) -> None:
    assert "3 of 3 comparisons agree" in run("boundary_value.py", str(tmp_path / "solution.png"))


@pytest.mark.slow
def test_sparse_jacobian(tmp_path: Path) -> None:
    assert "the Jacobians agree; 4 products instead of 800" in run("sparse_jacobian.py", str(tmp_path / "solution.png"))


@pytest.mark.slow
def test_array_api_libraries() -> None:
    printed = run("array_api_libraries.py")
    expected = {
        "array_api_extra": "array_api_extra.kron: [[1.0, 1.0, 2.0, 2.0, 4.0, 4.0]]",
        "scipy": "scipy.integrate.trapezoid, gradient: [0.5, 1.0, 0.5]",
        "sklearn": "sklearn mean_squared_error: 18.0",
    }
    for library, line in expected.items():
        if importlib.util.find_spec(library) is not None:
            assert line in printed


@pytest.mark.slow
def test_rnn(tmp_path: Path) -> None:
    assert "mean squared error" in run("rnn.py", str(tmp_path / "loss.png"))


@pytest.mark.slow
def test_pendulum(tmp_path: Path) -> None:
    assert "adjoint equation agree" in run("pendulum.py", str(tmp_path / "fit.png"))


@pytest.mark.slow
def test_arma(tmp_path: Path) -> None:
    assert "the coefficients are right" in run("arma.py", str(tmp_path / "fit.png"))


@pytest.mark.slow
def test_data_parallel() -> None:
    assert run("data_parallel.py").count("over 4 devices: loss") == 3


@pytest.mark.slow
def test_sharded_transformer() -> None:
    printed = run("sharded_transformer.py")
    ways = ("data-parallel", "fully sharded", "tensor-parallel")
    losses = re.findall(r"^(.+): loss ([\d.]+), off by at most \de-0[67];", printed, re.MULTILINE)
    assert [way for way, _ in losses] == [*ways]
    assert len({loss for _, loss in losses}) == 1
    assert printed.count("a device over heads; at 50 GB/s that is") == 1


@pytest.mark.slow
def test_ring() -> None:
    assert run("ring.py").count("of the largest element") == 3


@pytest.mark.slow
def test_two_processes() -> None:
    assert run("two_processes.py").count("has 64 of 128 examples") == 2


@pytest.mark.slow
def test_convolution(tmp_path: Path) -> None:
    assert "are recognised" in run("convolution.py", str(tmp_path / "loss.png"))
    assert (tmp_path / "loss.png").stat().st_size > 1000


@pytest.mark.slow
def test_transformer(tmp_path: Path) -> None:
    assert "words are words" in run("transformer.py", str(tmp_path / "loss.png"))


@pytest.mark.slow
def test_gaussian_process(tmp_path: Path) -> None:
    assert "relative difference" in run("gaussian_process.py", str(tmp_path / "posterior.png"))
    assert (tmp_path / "posterior.png").stat().st_size > 1000


@pytest.mark.slow
def test_gamma_regression(tmp_path: Path) -> None:
    run("gamma_regression.py", str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").stat().st_size > 1000


@pytest.mark.slow
def test_elliptic_pendulum(tmp_path: Path) -> None:
    assert "an amplitude one degree larger" in run("elliptic_pendulum.py", str(tmp_path / "swings.png"))


@pytest.mark.slow
def test_stiff_kinetics(tmp_path: Path) -> None:
    assert "singular mass matrix" in run("stiff_kinetics.py", str(tmp_path / "kinetics.png"))
    assert (tmp_path / "kinetics.png").stat().st_size > 1000


@pytest.mark.slow
def test_spline_regression(tmp_path: Path) -> None:
    assert "leave-one-out error differs" in run("spline_regression.py", str(tmp_path / "fits.png"))
    assert (tmp_path / "fits.png").stat().st_size > 1000


@pytest.mark.slow
def test_option_prices(tmp_path: Path) -> None:
    assert "by differences of prices at the same points" in run("option_prices.py", str(tmp_path / "prices.png"))
    assert (tmp_path / "prices.png").stat().st_size > 1000


@pytest.mark.slow
def test_wishart_process(tmp_path: Path) -> None:
    assert "it is within the band of 95 %" in run("wishart_process.py", str(tmp_path / "correlation.png"))
    assert (tmp_path / "correlation.png").stat().st_size > 1000


@pytest.mark.slow
def test_ragged_graph_network(tmp_path: Path) -> None:
    assert "the step was traced 1 time" in run("ragged_graph_network.py", str(tmp_path / "graphs.png"))
    assert (tmp_path / "graphs.png").stat().st_size > 1000


@pytest.mark.slow
def test_bessel_fit(tmp_path: Path) -> None:
    run("bessel_fit.py", str(tmp_path / "curve.png"))
    assert (tmp_path / "curve.png").stat().st_size > 1000


@pytest.mark.slow
def test_data_types() -> None:
    assert "the motion between the clouds is found" in run("data_types.py")


@pytest.mark.slow
def test_optimal_control(tmp_path: Path) -> None:
    assert "3 of 3 checks agree" in run("optimal_control.py", str(tmp_path / "control.png"))


@pytest.mark.slow
def test_differentiable_linear_program(tmp_path: Path) -> None:
    assert "3 of 3 checks agree" in run("differentiable_linear_program.py", str(tmp_path / "prices.png"))


@pytest.mark.slow
def test_finite_elements(tmp_path: Path) -> None:
    assert "5 of 5 checks agree" in run("finite_elements.py", str(tmp_path / "cantilever.png"))
    assert (tmp_path / "cantilever.png").stat().st_size > 1000


@pytest.mark.slow
def test_image_registration(tmp_path: Path) -> None:
    assert "sampled with -2.6" in run("image_registration.py", str(tmp_path / "registered.png"))
    assert (tmp_path / "registered.png").stat().st_size > 1000


@pytest.mark.slow
def test_tomography(tmp_path: Path) -> None:
    assert "the gradient at the solution is" in run("tomography.py", str(tmp_path / "tomography.png"))
    assert (tmp_path / "tomography.png").stat().st_size > 1000


def test_no_example_writes_to_a_name_in_a_folder_that_others_share() -> None:
    """Another user may have put a link there."""
    pages = [*EXAMPLES.glob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert not [path.name for path in pages if re.search(r"gettempdir|[\"'](/var)?/tmp/", path.read_text())]
