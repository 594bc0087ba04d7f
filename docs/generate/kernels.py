"""The kernels that run the pages' code."""

from __future__ import annotations

import sys
import tempfile
import uuid
from pathlib import Path


def use_files() -> None:
    """Let kernels listen on files instead of ports: two that start at once may be handed the same port."""
    import jupyter_client
    from traitlets import CaselessStrEnum

    if sys.platform == "win32":  # which has no such files
        return

    class Manager(jupyter_client.AsyncKernelManager):  # type: ignore[misc]
        """A manager whose kernels listen on files."""

        transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc", config=True)

        def _ip_default(self) -> str:
            """Return where the files are: a kernel runs in the folder of its page, and the build in another one."""
            return str(Path(tempfile.gettempdir()) / f"pullback-{uuid.uuid4().hex}")

    jupyter_client.AsyncKernelManager = Manager
