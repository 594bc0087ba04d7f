"""What the chaos test does to processes and to what lies between them: their connections, and their disk."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path


class Proxy:
    """A port that leads to another one of this machine, and whose connections can be cut, or go silent."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.silent = False
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        while not self.closed:
            try:
                far = socket.create_connection(("127.0.0.1", self.target), 5)
                break
            except OSError:  # nobody listens yet, or any more
                time.sleep(0.05)
        else:
            near.close()
            return
        far.settimeout(None)
        self.pairs.append((near, far))
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                while self.silent:  # what comes is lost, and nobody is told
                    if self.closed:
                        return
                    time.sleep(0.1)
                target.sendall(data)
        except OSError:
            pass
        if not self.silent:
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def cut(self, chance: random.Random) -> str:
        """Cut one of the connections, or all, and return how many."""
        chosen = self.pairs if chance.random() < 0.3 else chance.sample(self.pairs, min(1, len(self.pairs)))
        for pair in list(chosen):
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        return f"{len(chosen)} of {len(self.pairs)}"

    def close(self) -> None:
        self.closed = True
        for end in (self.listener, *(end for pair in self.pairs for end in pair)):
            end.close()


def between(pids: dict[int, int], others: set[int]) -> list[tuple[int, int, int]]:
    """The connections between processes: the number of a process, its descriptor, and the number of the other process.

    Args:
      pids: the system's numbers of the processes, by their own.
      others: ports whose connections are left out.
    """
    ports = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                words = line.split()
                here, there = (int(words[i].rpartition(":")[2], 16) for i in (1, 2))
                if words[3] == "01" and others.isdisjoint((here, there)):  # established
                    ports[f"socket:[{words[9]}]"] = here, there
    ends = {}
    for i, pid in pids.items():
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    pair = ports.get(os.readlink(entry.path))
                    if pair is not None:
                        ends[pair] = i, int(entry.name)
    found = [(*end, ends[there, here][0]) for (here, there), end in sorted(ends.items()) if (there, here) in ends]
    return [end for end in found if end[0] != end[2]]


class Disk:
    """The folder of a cache, on a small disk of its own where this process may mount one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "none", str(folder)]
        can = os.geteuid() == 0 and shutil.which("mount")
        self.mounted = bool(can) and not subprocess.run(mount, check=False, capture_output=True).returncode

    def fill(self) -> bool:
        """Let no byte be free; whether this is possible."""
        if not self.mounted:
            return False
        with contextlib.suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as file:
            while file.write(bytes(1 << 10)):
                pass
        return True

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


def limit_files(pid: int) -> None:
    """Let a process write no more than a kilobyte to any file, as if the disk was full then."""
    with contextlib.suppress(ProcessLookupError):
        assert pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, 1024))


def pulses(pid: int, seconds: float, chance: random.Random) -> None:
    """Stop and continue a process many times."""
    end = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0.02, 0.3))
            os.kill(pid, signal.SIGCONT)
            time.sleep(chance.uniform(0.01, 0.1))
