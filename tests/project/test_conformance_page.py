"""``docs/conformance.md`` says what was counted."""

from __future__ import annotations

import pytest

from tests.project import conformance_page


def test_the_page_is_that_of_the_counts() -> None:
    written = conformance_page.PAGE.read_text(encoding="utf-8")
    assert written == conformance_page.page(), "run python -m tests.project.conformance_page"


def test_a_line_that_is_no_row_is_refused(tmp_path, monkeypatch) -> None:
    counts = tmp_path / "counts.txt"
    monkeypatch.setattr(conformance_page, "COUNTS", counts)
    counts.write_text("# comment\nb_test 3 1 0 0 0\na_test 0 0 2 0 0\n")
    assert [(row.file, row.percent) for row in conformance_page.rows()] == [("a_test", ""), ("b_test", "75.0")]
    for line in ("b_test 1 2 3", "b_test 1 2 3 4 5\nb_test 1 2 3 4 5"):
        counts.write_text(line)
        with pytest.raises(ValueError, match="5 numbers"):
            conformance_page.rows()
