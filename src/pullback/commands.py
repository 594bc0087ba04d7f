"""The commands of ``python -m pullback``, except ``run``."""

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
from pullback.core.command_name import command_name
from pullback.core.errors import ArgumentError, BackendError, RendererError
from pullback.core.source import hide_internal_frames

_HELP = """\
Show the program of a function without running it.

ARGUMENTS are the arguments of the function that is shown, separated by commas:
  f32[2,3]  i32[]  bf16[4]  c64[8]  bool[5]  key<fry>[]      arrays, by their types
  2  0.5  True  None                                         Python values; numbers become inputs
  (f32[3], f32[])  [f32[3]]  {"w": f32[3], "b": f32[]}       trees of them
Arguments at the positions in --static are passed unchanged, and may be strings too."""
_EXAMPLES = """\
Transformations are applied from left to right: grad,jit shows jit(grad(FUNCTION)). jvp, vjp and linearize add the
necessary tangents and cotangents as further inputs.

examples:
  NAME show model:loss --args '{"w": f32[3,1], "b": f32[1]}, f32[8,3]'
  NAME show model:loss --args "f32[8,3], 2" --static 1 --transform grad,vmap,jit --as hlo
  NAME show model.py:norm --args "f32[3]" --transform vjp --as svg --output norm.svg"""


def _parser() -> argparse.ArgumentParser:
    name = command_name()
    parser = argparse.ArgumentParser(prog=name, description="Look at programs, start them, and report on Pullback.")
    parser.add_argument("--version", action="version", version=f"pullback {pullback.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_show(commands, name)
    _add_launch(commands, name)
    commands.add_parser("run", help="run a program written for JAX on Pullback", add_help=False)
    about = "print the versions of Python and of the libraries, the devices and the machine, for bug reports"
    commands.add_parser("info", help=about, description=f"{about[0].upper()}{about[1:]}.")
    about = "print where compiled programs are kept, how many there are, and their size; or remove them"
    command = commands.add_parser("cache", help=about, description=f"{about[0].upper()}{about[1:]}.")
    command.add_argument("--clear", action="store_true", help="remove all compiled programs from the cache")
    return parser


def _add_show(commands: Any, name: str) -> None:
    command = commands.add_parser(
        "show",
        help="show the program of a function",
        description=_HELP,
        epilog=_EXAMPLES.replace("NAME", name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "function", metavar="MODULE:FUNCTION", help="such as model:loss, package.model:Net.apply or model.py:loss"
    )
    command.add_argument("--args", default="", metavar="ARGUMENTS", help="the types of the arguments; see above")
    command.add_argument(
        "--static", default="", metavar="POSITIONS", help="static arguments, passed unchanged, such as 1,2"
    )
    command.add_argument(
        "--transform",
        default="",
        metavar="NAMES",
        help=f"transformations, in the order of application, among {', '.join(show.transformations())}",
    )
    command.add_argument(
        "--as",
        default="jaxpr",
        dest="form",
        choices=show.FORMS,
        help="the program as a jaxpr (the default), as StableHLO text, as a drawing, or as the text of the drawing",
    )
    command.add_argument("--output", metavar="FILE", help="the file to write to; standard output by default")


def _add_launch(commands: Any, name: str) -> None:
    command = commands.add_parser(
        "launch",
        help="start several processes of a program on this machine",
        usage=f"{name} launch -n N [--devices N] [--port N] [--grace SECONDS] PROGRAM ...",
        description="Start several processes of a Python program on this machine. Each calls "
        "pullback.distributed.initialize() first. Lines of output begin with the number of the process. The exit "
        "status is that of the first process that failed, or 0.",
    )
    command.add_argument("-n", "--processes", type=int, required=True, metavar="N", help="how many processes")
    command.add_argument("--devices", type=int, metavar="N", help="the number of CPU devices of each process")
    command.add_argument("--port", type=int, metavar="N", help="the port of process 0; a free one by default")
    command.add_argument(
        "--grace",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="how long the others may go on after one has failed, or stay stopped after the others have ended (10)",
    )
    command.add_argument(
        "program",
        nargs="*",
        metavar="PROGRAM",
        help="the path of a program, or -m and a module, followed by its arguments",
    )


def _divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line: the arguments for argparse, and the program that ``launch`` starts, with its arguments."""
    given = list(arguments)
    at = 1
    while given[:1] == ["launch"] and at < len(given) and given[at].startswith("-") and given[at] != "-m":
        option = given[at]
        alone = "=" in option or option in ("-h", "--help", "--") or (option[:2] == "-n" and len(option) > 2)
        at += 1 if alone else 2
        if option == "--":
            break
    return (given[:at], given[at:]) if given[:1] == ["launch"] else (given, [])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; without one, print the help.

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
    try:
        if options.command == "launch":
            if not 0 <= options.grace < math.inf:
                raise ArgumentError(f"--grace must be a number of seconds, got {options.grace}")
            return launch.launch(program, options.processes, options.devices, options.port, options.grace)
        _write(_report(parser, options), getattr(options, "output", None))
    except show.TracingError as failure:
        error = failure.error
        hide_internal_frames(error)
        traceback.print_exception(error)
        return 1
    except (ArgumentError, BackendError, RendererError, OSError) as error:
        print(f"{command_name()} {options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _report(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Return the text that a command prints."""
    if options.command == "show":
        return show.subject(options.function, options.args, options.static, options.transform).text(options.form)
    if options.command == "info":
        return str(pullback.print_environment_info(return_string=True))
    if options.command == "cache":
        return _cache(options.clear)
    return parser.format_help()


def _cache(clear: bool) -> str:
    """Return a report on the cache of compiled programs on disk; ``clear`` says whether to empty it first."""
    from pullback.backends.compiler import disk_cache

    directory = disk_cache.cache_directory()
    if directory is None:
        return "directory: none, because the cache is off (PULLBACK_ENABLE_COMPILATION_CACHE) or there is no home"
    removed = [f"removed: {disk_cache.clear()}"] if clear else []
    programs, size = disk_cache.usage()
    return "\n".join([f"directory: {directory}", *removed, f"programs: {programs}", f"size: {size} bytes"])


def _write(text: str, path: str | None) -> None:
    text = text if text.endswith("\n") else f"{text}\n"
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; the interpreter flushes again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
