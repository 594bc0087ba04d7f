"""The page of the time of ``precision`` is that of the recorded results."""

import json

import pytest

import pullback
from benchmarks.precision.__main__ import PAGE, RESULTS, page, ratio
from benchmarks.precision.programs import cases, programs
from tests.analysis.precision_cases import CASES


def test_the_page_has_the_results() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == page(results)
    assert len(results["programs"]) == 11
    assert len(results["cases"]) == len(CASES)


def test_programs_are_measured_in_both_precisions() -> None:
    with pullback.enable_x64():
        found = programs()
        assert len(found) == 22
        assert len(cases()) == len(CASES)
    (chosen,) = [p for p in found if p.name == "root of a quadratic" and p.dtype == "float32"]
    measured = ratio(chosen, 1)
    assert measured["ratio"] == pytest.approx(measured["precision"] / measured["eager"])
    assert measured["ratio"] > 1
