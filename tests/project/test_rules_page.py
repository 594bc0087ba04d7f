"""``docs/rules.md`` says what is declared."""

from __future__ import annotations

from tests.primitives_of import all_primitives
from tests.project import rules_page


def test_the_page_is_that_of_the_declarations() -> None:
    assert rules_page.PAGE.read_text() == rules_page.page(), "run make rules"


def test_every_rule_of_an_operation_is_on_the_page() -> None:
    for p, place in all_primitives().items():
        methods = {
            name.removesuffix("_rule") for name, x in vars(p).items() if name.endswith("_rule") and x is not None
        }
        assert methods <= {*rules_page.OTHERWISE, "tangent"}, place
