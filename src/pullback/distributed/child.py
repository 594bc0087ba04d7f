"""A process of a job: ``python -m pullback.distributed.child FOLDER`` runs the function in the file ``task`` there.

It writes ``result``, or ``error`` with the exception and its traceback, and ends when its standard input does.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from pathlib import Path


def _end_with_parent() -> None:
    """Wait until the parent, which holds the other end of the standard input, has ended; then end this process."""
    while os.read(0, 1):  # no buffer, whose lock would stop the interpreter from ending
        pass
    os._exit(1)


def _write(folder: Path, name: str, content: bytes) -> None:
    (folder / f"{name}.part").write_bytes(content)
    (folder / f"{name}.part").replace(folder / name)


def main(folder: Path) -> int:
    """Run the function, after it has joined the other processes of the job."""
    import cloudpickle

    from pullback import distributed

    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        function, args, kwargs = pickle.loads((folder / "task").read_bytes())
        distributed.initialize()
        content = cloudpickle.dumps(function(*args, **kwargs))
        distributed.shutdown()
    except BaseException as error:
        text = traceback.format_exc()
        try:
            pickled = cloudpickle.dumps(error)
            exit_or_not_made = not isinstance(pickle.loads(pickled), Exception)
        except Exception:  # an exception that cannot be pickled, or not be made of its arguments
            exit_or_not_made = True
        if exit_or_not_made:  # SystemExit would end the program that started the job
            pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
        _write(folder, "error", pickle.dumps((pickled, text)))
        return 1
    _write(folder, "result", content)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
