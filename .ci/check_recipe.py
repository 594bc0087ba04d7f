"""Read a recipe for conda as rattler-build does: ``python .ci/check_recipe.py conda/recipe.yaml``.

An unknown key, or a value of another type, is an error. The recipe is rendered for each Python that it is built for.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rattler_build import Stage0Recipe, VariantConfig

VARIANTS = """
python: ["3.11", "3.12", "3.13"]
c_compiler: [gcc]
c_compiler_version: ["14"]
c_stdlib: [sysroot]
c_stdlib_version: ["2.17"]
"""


def main(path: str) -> None:
    recipe = Stage0Recipe.from_yaml(Path(path).read_text(encoding="utf-8"))
    rendered = recipe.render(VariantConfig.from_yaml(VARIANTS))
    for variant in rendered:
        found = variant.recipe.to_dict()
        print(f"{path}: {found['package']['name']} {found['package']['version']}, {found['build']['string']}")
    assert len(rendered) == 3, "the recipe has a package for each Python"


if __name__ == "__main__":
    main(*sys.argv[1:])
