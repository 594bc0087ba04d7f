"""``python -m tests.soak long --minutes 60 --mode compiled``: does memory stay where it is?

``kinds`` makes many calls of one kind after another, each kind in a process of its own; ``long`` runs programs of many
kinds for a given time. Both say by how much resident memory grew, and end with the status 1 if it grew by more than
allocators and bounded caches explain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.soak import kinds, long


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    kinds.add_arguments(commands.add_parser("kinds", help="many calls of one kind after another"))
    long.add_arguments(commands.add_parser("long", help="programs of many kinds, for a given time"))
    given = parser.parse_args(arguments)
    return given.run(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
