"""The commands of ``python -m pullback``, except ``run``."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import pullback
from pullback import explain, launch, show
from pullback.core import systems
from pullback.core.command_name import command_name
from pullback.core.errors import ArgumentError, BackendError, MissingLibraryError, RendererError
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

_SHELLS = ("bash", "zsh", "fish")
_RUN = "run a program written for JAX, with jax served by Pullback"


def _parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of the command line that is called by ``name``."""
    parser = argparse.ArgumentParser(prog=name, description="Look at programs, start them, and report on Pullback.")
    parser.add_argument("--version", action="version", version=f"pullback {pullback.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_show(commands, name)
    _add_launch(commands, name)
    commands.add_parser("run", help=_RUN, add_help=False)
    about = "print the versions of Python and of the libraries, the devices and the machine, for bug reports"
    commands.add_parser("info", help=about, description=f"{about[0].upper()}{about[1:]}.")
    about = "print where compiled programs are kept, how many there are, and their size; or remove them"
    command = commands.add_parser("cache", help=about, description=f"{about[0].upper()}{about[1:]}.")
    command.add_argument("--clear", action="store_true", help="remove all compiled programs from the cache")
    _add_profile(commands)
    _add_explain(commands)
    _add_bench(commands)
    _add_completion(commands, name)
    return parser


def _add_explain(commands: Any) -> None:
    about = "explain an error: when it is raised, a program that fails, and the same program mended"
    command = commands.add_parser("explain", help=about, description=f"{about[0].upper()}{about[1:]}.")
    command.add_argument("error", nargs="?", metavar="ERROR", help="such as ShapeError; without it, list all errors")


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


def _add_profile(commands: Any) -> None:
    command = commands.add_parser(
        "profile",
        help="show how much memory a function needs, by line",
        description="Show how much memory one call of a function needs beside its arguments and results, and which "
        "lines hold it at the peak. It is predicted from the program; nothing runs. ARGUMENTS and NAMES are those of "
        "the command show. A file without a function runs, and the arrays that are alive are counted.",
    )
    command.add_argument("function", metavar="MODULE:FUNCTION", help="such as model:loss or model.py:loss; or model.py")
    command.add_argument("--memory", action="store_true", required=True, help="the only profile that there is")
    command.add_argument("--args", default="", metavar="ARGUMENTS", help="the types of the arguments")
    command.add_argument("--static", default="", metavar="POSITIONS", help="static arguments, such as 1,2")
    command.add_argument("--transform", default="", metavar="NAMES", help="transformations, such as grad")
    command.add_argument(
        "--compiled", action="store_true", help="also compile the function, and read the compiler's count"
    )


def _add_launch(commands: Any, name: str) -> None:
    command = commands.add_parser(
        "launch",
        help="start several processes of a program on this machine",
        usage=f"{name} launch -n N [--devices N] [--port N] [--grace SECONDS] [--restart N] PROGRAM ...",
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
        "--restart",
        type=int,
        default=0,
        metavar="N",
        help="how many times to start the program again after a failure (0)",
    )
    command.add_argument(
        "program",
        nargs="*",
        metavar="PROGRAM",
        help="the path of a program, or -m and a module, followed by its arguments",
    )


def _add_bench(commands: Any) -> None:
    command = commands.add_parser(
        "bench",
        help="measure Pullback on this machine, beside JAX, PyTorch and autograd where they are installed",
        description="Measure Pullback on this machine: a small set of workloads, eager and compiled, beside JAX, "
        "PyTorch and autograd where they are installed, each in a process of its own. Results are compared before "
        "times are. It takes a minute or two; let nothing else run meanwhile. The exit status is 1 if Pullback fails, "
        "or the result of another library differs.",
    )
    command.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="workloads whose names begin so; repeatable"
    )
    command.add_argument("--json", action="store_true", help="print seconds and ratios in JSON, instead of a table")
    command.add_argument("--no-progress", action="store_true", help="show no progress bar")


def _add_completion(commands: Any, name: str) -> None:
    command = commands.add_parser(
        "completion",
        help="print the script by which a shell completes this command line",
        description="Print the script by which a shell completes the commands and options of `pullback`. It needs the "
        "library shtab, which `pip install 'pullback[completion]'` brings.",
        epilog=f'bash: eval "$({name} completion bash)" in ~/.bashrc.  zsh: {name} completion zsh > _pullback, in a '
        f"folder of $fpath.  fish: {name} completion fish > ~/.config/fish/completions/pullback.fish",
    )
    command.add_argument("shell", choices=_SHELLS, help="the shell")


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
      The exit status: 0, 1 if the function could not be traced or ``bench`` failed, or 2 if the arguments are invalid;
      for ``launch``, the exit status of the first process that failed.

    Raises:
      SystemExit: the options are unknown, or ask for help.

    >>> from pullback.commands import main
    >>> main(["show", "pullback.numpy:tanh", "--args", "f32[3]"])
    { lambda ; a:f32[3]. let b:f32[3] = tanh a in (b,) }
    0
    """
    own, program = _divided(sys.argv[1:] if argv is None else argv)
    parser = _parser(command_name())
    _check_command(parser, own[:1])
    options = parser.parse_args(own)
    try:
        if options.command == "launch":
            if not 0 <= options.grace < math.inf:
                raise ArgumentError(f"--grace must be a number of seconds, got {options.grace}")
            return launch.launch(
                program, options.processes, options.devices, options.port, options.grace, options.restart
            )
        if options.command == "bench":
            return _bench(options.only, options.json, not options.no_progress)
        _write(_report(parser, options), getattr(options, "output", None))
    except show.TracingError as failure:
        error = failure.error
        hide_internal_frames(error)
        traceback.print_exception(error)
        return 1
    except (ArgumentError, BackendError, MissingLibraryError, RendererError, OSError) as error:
        print(f"{command_name()} {options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _check_command(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Leave with a message if the command ``given``, a list of one word or of none, is a misspelt one."""
    known = [name for action in parser._actions for name in action.choices or ()]
    near = [like for word in given if word not in known for like in difflib.get_close_matches(word, known, 1)]
    if near:
        parser.error(f"there is no command {given[0]!r}. Did you mean {near[0]}?")


def _report(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Return the text that a command prints."""
    if options.command == "show":
        return show.subject(options.function, options.args, options.static, options.transform).text(options.form)
    if options.command == "profile":
        return _memory(options)
    if options.command == "info":
        return str(pullback.print_environment_info(return_string=True))
    if options.command == "cache":
        return _cache(options.clear)
    if options.command == "explain":
        return explain.of_command_line(options.error)
    if options.command == "completion":
        return _completion(options.shell)
    return parser.format_help()


def _memory(options: argparse.Namespace) -> str:
    """Return the table of the command ``profile``."""
    from pullback.analysis import memory_profile
    from pullback.analysis.memory import of_program

    if options.function.endswith(".py"):
        if options.args or options.static or options.transform or options.compiled:
            raise ArgumentError(
                f"profile: {options.function} is a program, which runs as it is: --args, --static, --transform and "
                f"--compiled are for a function, as in {options.function}:FUNCTION"
            )
        if not os.path.isfile(options.function):
            raise ArgumentError(f"profile: there is no file {options.function}")
        return of_program(options.function)
    found = show.subject(options.function, options.args, options.static, options.transform)
    try:
        return str(memory_profile(found.function, measure="compiled" if options.compiled else None)(*found.args))
    except BackendError:
        raise
    except Exception as error:
        raise show.TracingError(error) from error


def _cache(clear: bool) -> str:
    """Return a report on the cache of compiled programs on disk; ``clear`` says whether to empty it first."""
    from pullback.backends.compiler import disk_cache

    directory = disk_cache.cache_directory()
    if directory is None:
        return "directory: none, because the cache is off (PULLBACK_ENABLE_COMPILATION_CACHE) or there is no home"
    removed = [f"removed: {disk_cache.clear()}"] if clear else []
    programs, size = disk_cache.usage()
    return "\n".join([f"directory: {directory}", *removed, f"programs: {programs}", f"size: {size} bytes"])


def _bench(only: Sequence[str], as_json: bool, progress: bool) -> int:
    """Measure the workloads whose names begin with one of ``only``, and print a table or JSON."""
    from pullback.bench import measure, report

    names, libraries, versions = measure.chosen(only), measure.installed(), dict[str, str]()
    terminal = sys.stderr if progress and sys.stderr.isatty() else None
    rows = dict(report.shown(measure.measured(names, libraries, versions), len(names), terminal))
    _write(report.as_json(rows, versions) if as_json else report.table(rows, libraries, versions), None)
    return int(report.has_failed(rows))


def _completion(shell: str) -> str:
    """Return the script by which a shell completes the command line ``pullback``."""
    try:
        import shtab
    except ImportError:
        raise MissingLibraryError(
            "this needs the library shtab, which is not installed; `pip install 'pullback[completion]'` brings it"
        ) from None
    parser = _parser("pullback")
    for action in _actions(parser):
        if action.metavar in ("FILE", "PROGRAM", "MODULE:FUNCTION"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options and arguments of a parser and of its commands; ``run`` parses its own, which are added."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                if name == "run":
                    command.add_argument("--report", action="store_true", help="print which names of JAX are missing")
                    command.add_argument("program", nargs="*", metavar="PROGRAM", help="the path of a program")
                yield from _actions(command)
        else:
            yield action


def _write(text: str, path: str | None) -> None:
    text = text if text.endswith("\n") else f"{text}\n"
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    try:
        systems.write_text(sys.stdout, text)
        sys.stdout.flush()
    except OSError as error:
        if not systems.reader_is_gone(error):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes again when it ends
