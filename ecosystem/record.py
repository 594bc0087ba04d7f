"""Record the figures of `ecosystem/programs` under the real JAX, with the Python that runs this.

python ecosystem/record.py [--times] [--timeout SECONDS] [NAME ...]

`--times` runs each program twice and adds its times to `ecosystem/times.json`.
"""

import argparse
import importlib.metadata
import json
import sys

import catalogue


def main() -> int:
    parser = argparse.ArgumentParser(description="record the figures of programs under the real JAX")
    parser.add_argument("names", nargs="*", help="programs; all if none is named")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each")
    parser.add_argument("--times", action="store_true", help="run each twice and write ecosystem/times.json")
    given = parser.parse_args()
    version = importlib.metadata.version("jax")
    failed = 0
    for name in catalogue.chosen(given.names):
        library = catalogue.PROGRAMS[name]
        try:
            command = [sys.executable, str(catalogue.path_of(name))]
            if given.times:
                ended = catalogue.run_twice(command, given.timeout, name, "JAX")
            else:
                ended = catalogue.run(command, given.timeout)
        except catalogue.ProgramError as error:
            print(f"{name}: {error}\n{error.stderr}", flush=True)
            failed += 1
            continue
        recorded = json.loads(catalogue.RECORDED.read_text()) if catalogue.RECORDED.exists() else {}
        recorded[name] = {library: importlib.metadata.version(library), "jax": version, "figures": ended.figures}
        print(f"{name}: {len(ended.figures)} figures", flush=True)
        in_order = {name: recorded[name] for name in catalogue.PROGRAMS if name in recorded}
        catalogue.RECORDED.write_text(_text(in_order))
    return int(failed > 0)


def _text(recorded: dict) -> str:
    """JSON with one line for each figure."""
    programs = []
    for name, entry in recorded.items():
        figures = ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in entry["figures"].items())
        head = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items() if key != "figures")
        programs.append(f' {json.dumps(name)}: {{{head}, "figures": {{\n{figures}}}}}')
    return "{\n" + ",\n".join(programs) + "\n}\n"


if __name__ == "__main__":
    raise SystemExit(main())
