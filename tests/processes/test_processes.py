"""Several processes: each test starts them, on the loopback, with a port that is free."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

START = """
import os, signal, sys, time
import numpy as np
import pullback
import pullback.numpy as pnp
from pullback.core import errors
from pullback.experimental import multihost_utils as utils

def started(**options):
    pullback.distributed.initialize(**{"initialization_timeout": 60, "shutdown_timeout_seconds": 30, **options})
    return pullback.process_index()

def caught(f):
    try:
        return f()
    except Exception as error:
        return error
"""


def run(tmp_path, program, processes, *options, start=START):
    """The exit status, and the output of each process, of a program in several processes; and what the launcher said."""
    path = tmp_path / "program.py"
    path.write_text(start + textwrap.dedent(program))
    command = [sys.executable, "-m", "pullback", "launch", "--processes", str(processes), *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    lines = (done.stdout + done.stderr).splitlines()
    said = [[line[4:] for line in lines if line.startswith(f"[{i}] ")] for i in range(processes)]
    return done.returncode, said, [line for line in lines if not re.match(r"\[\d+\] ", line)]


def test_devices_values_and_second_calls(tmp_path):
    status, said, _ = run(
        tmp_path,
        """
        before = pullback.distributed.is_initialized()
        i = started()
        assert not before and pullback.distributed.is_initialized()
        assert (i, pullback.process_count(), pullback.process_indices()) == (int(os.environ["PULLBACK_PROCESS_ID"]), 3, [0, 1, 2])
        assert "was called already" in str(caught(started))
        assert [d.id for d in pullback.devices()] == [0, 1, 2048, 2049, 4096, 4097]
        assert [d.id for d in pullback.local_devices()] == [2048 * i, 2048 * i + 1]
        assert [d.process_index for d in pullback.devices()] == [0, 0, 1, 1, 2, 2]
        assert pullback.local_devices(2)[0].local_hardware_id == 0
        assert (pullback.device_count(), pullback.local_device_count()) == (6, 2)
        assert isinstance(caught(lambda: pullback.local_devices(3)), ValueError)

        double = pullback.jit(lambda x: 2 * x)
        here = pullback.local_devices()[1]
        assert double(pullback.device_put(np.float32(i), here)).devices() == {here} and double(3.0) == 6

        state = {"w": pnp.full((2, 3), i), "n": np.float64(2), "half": pnp.ones(2, pnp.bfloat16) * i}
        all_states = utils.process_allgather(state)
        assert np.array_equal(all_states["w"][:, 0, 0], [0, 1, 2]) and all_states["w"].shape == (3, 2, 3)
        assert all_states["n"].dtype == np.float32 and all_states["half"].dtype == pnp.bfloat16
        tiled = utils.process_allgather(state, tiled=True)
        assert [x.shape for x in (tiled["w"], tiled["n"], tiled["half"])] == [(6, 3), (3,), (6,)]
        assert utils.broadcast_one_to_all(i) == 0 and utils.broadcast_one_to_all(i, is_source=i == 2) == 2
        large = np.random.default_rng(i).random(500_000).astype(np.float32)
        assert np.array_equal(utils.process_allgather(large)[i], large)
        utils.sync_global_devices("here")
        utils.assert_equal(all_states)

        error = caught(lambda: utils.assert_equal({"step": i}, "the steps"))
        assert isinstance(error, AssertionError) and "the steps: the values of ['step'] are" in str(error), error
        error = caught(lambda: utils.sync_global_devices(f"place {i}"))
        assert f"is at sync_global_devices('place {(i + 1) % 3}')" in str(error), error
        error = caught(lambda: utils.process_allgather(np.zeros(2 + i)))
        assert "is at process_allgather" in str(error) and "of f32[4]" in str(error), error
        assert "exactly one process, and is in [0, 1, 2]" in str(caught(lambda: utils.broadcast_one_to_all(1, True)))
        if os.fork() == 0:  # a child is no part of it
            assert not pullback.distributed.is_initialized()
            os._exit(0)
        os.wait()
        utils.sync_global_devices("end")
        pullback.distributed.shutdown()
        pullback.distributed.shutdown()
        assert double(np.float32(4)) == 8
        assert "before the first program" in str(caught(started))
        print("fine")
        """,
        3,
        "--devices",
        "2",
    )
    assert status == 0 and said == [["fine"]] * 3, said


TRAINING = """
i = started(heartbeat_timeout_seconds={heartbeat})
step = pullback.jit(lambda w, g: w - 0.1 * g)
w = pnp.ones(3)
for k in range(10**6):
    try:
        g = utils.process_allgather(np.asarray(w) * (i + 1)).mean(0)
    except errors.ProcessLostError as error:
        np.save(f"{{sys.argv[0]}}.{{i}}.npy", w)
        print(error.processes, error)
        break
    w = step(w, g)
    if i == {victim} and k == 5:
        {death}
"""


@pytest.mark.parametrize(
    ("victim", "death", "why", "status"),
    [
        (2, "os.kill(os.getpid(), signal.SIGKILL)", "its connection ended: it crashed, or was killed", 137),
        (0, "os.kill(os.getpid(), signal.SIGKILL)", "its connection ended: it crashed, or was killed", 137),
        (1, "os.kill(os.getpid(), signal.SIGSTOP)", "it gave no sign of life for 4 seconds", 0),
        (1, "raise ZeroDivisionError('a number')", "it ended with ZeroDivisionError: a number", 1),
        (0, "break", "it ended", 0),
    ],
    ids=["killed", "first killed", "stopped", "failed", "first ended"],
)
def test_a_process_is_lost(tmp_path, victim, death, why, status):
    """The others say which one and why, and save what they have."""
    import numpy as np

    program = TRAINING.format(victim=victim, death=death, heartbeat=4)
    if "SIGSTOP" in death:  # somebody has to end it
        program += (
            f"if i == 0:\n    time.sleep(1)\n    os.kill(int(open({str(tmp_path / 'pid')!r}).read()), signal.SIGKILL)\n"
        )
        program = program.replace(
            "i = started",
            f"if os.environ['PULLBACK_PROCESS_ID'] == '{victim}':\n    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ni = started",
            1,
        )
        status = 137
    code, said, _ = run(tmp_path, program, 3)
    assert code == status, said
    for i in {0, 1, 2} - {victim}:
        assert re.match(rf"\(.*\b{victim}\b.*\) process_allgather", said[i][0]), said
        assert f"process {victim} is gone: {why}" in said[i][0], said
        assert len(said[i]) == 1, said
        assert np.load(tmp_path / f"program.py.{i}.npy").shape == (3,)


def test_initialize_fails_and_succeeds(tmp_path):
    status, said, _ = run(
        tmp_path,
        """
        import socket
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            there = f"127.0.0.1:{taken.getsockname()[1]}"
            error = caught(lambda: started(coordinator_address=there))
            assert isinstance(error, RuntimeError) and "cannot listen at" in str(error), error
        error = caught(lambda: started(coordinator_address=there, num_processes=2, process_id=1, initialization_timeout=0.5))
        assert isinstance(error, TimeoutError) and "tried for 0.5 seconds to reach process 0" in str(error), error
        assert not pullback.distributed.is_initialized()
        error = caught(lambda: started(coordinator_address=there, num_processes=2, process_id=0, initialization_timeout=0.5))
        assert isinstance(error, TimeoutError) and "waited 0.5 seconds for process 1" in str(error), error
        started()
        assert pullback.jit(lambda x: x + 1)(1.0) == 2 and utils.process_allgather(3) == [3]
        print("fine")
        """,
        1,
    )
    assert status == 0 and said == [["fine"]], said


def test_initialize_too_late(tmp_path):
    code = START + "pullback.jit(lambda x: x + 1)(1.0)\nprint(repr(caught(started)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "initialize must be called before the first program is compiled" in done.stdout, done


# The launcher ---------------------------------------------------------------------------------------------------------

QUICK = "import os, signal, sys, time\ni = int(os.environ['PULLBACK_PROCESS_ID'])\n"


def test_output_has_prefixes_and_arguments_arrive(tmp_path):
    status, said, rest = run(tmp_path, "print(i)\nprint('x', file=sys.stderr)", 4, start=QUICK)
    assert (status, rest) == (0, [])
    assert said == [[str(i), "x"] for i in range(4)]


@pytest.mark.parametrize(
    ("death", "status", "described"),
    [
        ("sys.exit(7)", 7, "process 1 failed with exit status 7"),
        ("os.kill(os.getpid(), 9)", 137, "process 1 was ended by SIGKILL"),
    ],
)
def test_all_end_when_one_fails(tmp_path, death, status, described):
    program = f"if i == 1:\n    {death}\ntime.sleep(90)"
    code, _, rest = run(tmp_path, program, 3, "--grace", "0.2", start=QUICK)
    assert code == status
    assert rest[0].endswith(described) and rest[1].endswith("ending process 0, process 2")


def test_interrupt_ends_all(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(QUICK + "print('pid', os.getpid(), flush=True)\ntime.sleep(90)")
    command = [sys.executable, "-m", "pullback", "launch", "--processes", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launcher:
        pids = [int(launcher.stdout.readline().split()[2]) for _ in range(2)]
        launcher.send_signal(2)
        assert launcher.wait(30) == 130
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
