"""``python -m pullback``, and the console script ``pullback``: commands that show programs, start them, and report.

python -m pullback show MODULE:FUNCTION --args "f32[3], f32[]" --transform grad,jit --as jaxpr|hlo|svg|dot
python -m pullback launch --processes 4 program.py ARGUMENTS
python -m pullback run program.py ARGUMENTS
python -m pullback info
python -m pullback explain ShapeError
python -m pullback cache
python -m pullback bench
python -m pullback completion bash
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, importing only the modules that it needs, so that programs start fast.

    Args:
      argv: its name and options; by default ``sys.argv``.

    Returns:
      The exit status, from :func:`pullback.commands.main` or :func:`pullback.compat.running.main`.

    >>> from pullback.__main__ import main
    >>> main(["show", "pullback.numpy:tanh", "--args", "f32[3]"])
    { lambda ; a:f32[3]. let b:f32[3] = tanh a in (b,) }
    0
    """
    given = sys.argv[1:] if argv is None else list(argv)
    if given[:1] == ["run"]:
        from pullback.compat import running

        return running.main(given[1:])
    from pullback import commands

    return commands.main(given)


def script() -> int:
    """Run the command of the console script ``pullback``, and return its exit status.

    Modules are looked for in the current directory first, as under ``python -m pullback``.
    """
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()  # instead of the directory of the script
    return main()


if __name__ == "__main__":
    sys.exit(main())
