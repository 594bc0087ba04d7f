"""The commands of ``python -m pullback`` that show programs, and the one that starts several processes."""

from __future__ import annotations

import argparse
import math
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import pullback
from pullback import launch, show
from pullback.core.errors import ArgumentError, BackendError, RendererError
from pullback.core.source import hide_internal_frames

_NAME = "python -m pullback"
_HELP = """\
Show the program that a function becomes, without running it.

ARGUMENTS are the arguments of the function that is shown, separated by commas:
  f32[2,3]  i32[]  bf16[4]  c64[8]  bool[5]  key<fry>[]      arrays, by their types
  2  0.5  True  None                                         values of Python; numbers are inputs nevertheless
  (f32[3], f32[])  [f32[3]]  {"w": f32[3], "b": f32[]}       trees of them
The arguments at the positions that --static names are passed as they are, and may be strings too."""
_EXAMPLES = """\
Transformations are applied from left to right: grad,jit shows jit(grad(FUNCTION)). jvp, vjp and linearize bring the
tangents and cotangents that they need as further inputs.

examples:
  python -m pullback show model:loss --args '{"w": f32[3,1], "b": f32[1]}, f32[8,3]'
  python -m pullback show model:loss --args "f32[8,3], 2" --static 1 --transform grad,vmap,jit --as hlo
  python -m pullback show model:norm --args "f32[3]" --transform vjp --as svg --output norm.svg"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_NAME, description="Look at programs, and start them.")
    parser.add_argument("--version", action="version", version=f"pullback {pullback.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    command = commands.add_parser(
        "show",
        help="show the program that a function becomes",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("function", metavar="MODULE:FUNCTION", help="such as model:loss or package.model:Net.apply")
    command.add_argument("--args", default="", metavar="ARGUMENTS", help="the arguments, by their types; see above")
    command.add_argument("--static", default="", metavar="POSITIONS", help="arguments to pass as they are, such as 1,2")
    command.add_argument(
        "--transform",
        default="",
        metavar="NAMES",
        help=f"transformations, in the order in which they are applied; of {', '.join(show.transformations())}",
    )
    command.add_argument(
        "--as",
        default="jaxpr",
        dest="form",
        choices=show.FORMS,
        help="the program as a jaxpr (the default), as StableHLO text, as a drawing, or as the text of the drawing",
    )
    command.add_argument("--output", metavar="FILE", help="where to write it; by default to standard output")
    _add_launch(commands)
    commands.add_parser("run", help="run a program written for JAX, with jax served by Pullback", add_help=False)
    return parser


def _add_launch(commands: Any) -> None:
    command = commands.add_parser(
        "launch",
        help="start several processes of a program on this machine",
        usage=f"{_NAME} launch --processes N [--devices N] [--port N] [--grace SECONDS] PROGRAM ...",
        description="Start several processes of a Python program on this machine. Each calls "
        "pullback.distributed.initialize() first. Lines of output begin with the number of the process. The exit "
        "status is that of the first process that failed, or 0.",
    )
    command.add_argument("--processes", type=int, required=True, metavar="N", help="how many processes")
    command.add_argument("--devices", type=int, metavar="N", help="into how many devices each divides the processor")
    command.add_argument(
        "--port", type=int, metavar="N", help="where process 0 listens; by default a port that is free"
    )
    command.add_argument(
        "--grace",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="for how long the others may go on when one has failed, or stay stopped when the others have ended (10)",
    )
    command.add_argument(
        "program",
        nargs="*",
        metavar="PROGRAM",
        help="the path of a program, or -m and a module; what follows are its arguments",
    )


def _divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line: the arguments for argparse, and the program that ``launch`` starts, with its arguments."""
    given = list(arguments)
    at = 1
    while given[:1] == ["launch"] and at < len(given) and given[at].startswith("-") and given[at] != "-m":
        at += 1 if "=" in given[at] or given[at] in ("-h", "--help", "--") else 2
        if given[at - 1] == "--":
            break
    return (given[:at], given[at:]) if given[:1] == ["launch"] else (given, [])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
      argv: its name and options; by default ``sys.argv``.

    Returns:
      The exit status: 0, 1 if the function could not be traced, or 2 if the arguments are invalid; for ``launch``, the
      exit status of the first process that failed.

    Raises:
      SystemExit: the options are unknown, or ask for help.

    >>> from pullback.commands import main
    >>> main(["show", "pullback.numpy:tanh", "--args", "f32[3]"])
    { lambda ; a:f32[3]. let b:f32[3] = tanh a in (b,) }
    0
    """
    own, program = _divided(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    options = parser.parse_args(own)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        if options.command == "launch":
            if not 0 <= options.grace < math.inf:
                raise ArgumentError(f"--grace must be a number of seconds, got {options.grace}")
            return launch.launch(program, options.processes, options.devices, options.port, options.grace)
        subject = show.subject(options.function, options.args, options.static, options.transform)
        text = subject.text(options.form)
        _write(text if text.endswith("\n") else text + "\n", options.output)
    except show.TracingError as failure:
        error = failure.error
        hide_internal_frames(error)
        traceback.print_exception(error)
        return 1
    except (ArgumentError, BackendError, RendererError, OSError) as error:
        print(f"{_NAME} {options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _write(text: str, path: str | None) -> None:
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; the interpreter flushes again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
