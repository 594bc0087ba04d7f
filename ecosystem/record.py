"""Record the figures of `ecosystem/programs` under the real JAX, with the Python that runs this.

python ecosystem/record.py [--timeout SECONDS] [NAME ...]
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
    given = parser.parse_args()
    version = importlib.metadata.version("jax")
    recorded = json.loads(catalogue.RECORDED.read_text()) if catalogue.RECORDED.exists() else {}
    failed = 0
    for name in catalogue.chosen(given.names):
        library = catalogue.PROGRAMS[name]
        try:
            figures, _ = catalogue.run([sys.executable, str(catalogue.path_of(name))], given.timeout)
        except catalogue.ProgramError as error:
            print(f"{name}: {error}\n{error.stderr}", flush=True)
            failed += 1
            continue
        recorded[name] = {library: importlib.metadata.version(library), "jax": version, "figures": figures}
        print(f"{name}: {len(figures)} figures", flush=True)
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
