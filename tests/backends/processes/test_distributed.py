"""Several processes: each test starts them, on the loopback, with a port that is free."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytestmark = pytest.mark.slow

START = """
import os, signal, sys, time, warnings
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
    """The exit status of a program in several processes, the output of each, and what the launcher said."""
    path = tmp_path / "program.py"
    path.write_text(start + textwrap.dedent(program))
    command = [sys.executable, "-m", "pullback", "launch", "--processes", str(processes), *options, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as launcher:
        try:
            output, errors = launcher.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            launcher.terminate()  # it ends its processes, those that are stopped too
            output, errors = launcher.communicate(timeout=25)
            pytest.fail(f"the processes did not end: {output}\n{errors}")
    lines = (output + errors).splitlines()
    said = [[line[4:] for line in lines if line.startswith(f"[{i}] ")] for i in range(processes)]
    return launcher.returncode, said, [line for line in lines if not re.match(r"\[\d+\] ", line)]


def test_devices_values_and_second_calls(tmp_path):
    status, said, _ = run(
        tmp_path,
        """
        before = pullback.distributed.is_initialized()
        i = started()
        assert not before and pullback.distributed.is_initialized()
        assert i == int(os.environ["PULLBACK_PROCESS_ID"])
        assert (pullback.process_count(), pullback.process_indices()) == (3, [0, 1, 2])
        assert "was already called" in str(caught(started))
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
        error = caught(lambda: utils.broadcast_one_to_all(1, True))
        assert "exactly one process, but is True in [0, 1, 2]" in str(error), error
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks while there are threads
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
    assert (status, said) == (0, [["fine"]] * 3)


def test_exported_functions_and_partitions(tmp_path):
    status, said, _ = run(
        tmp_path,
        """
        from pullback import P, export, jit, lax
        from pullback.experimental.custom_partitioning import custom_partitioning
        from pullback.sharding import AbstractMesh, AxisType, NamedSharding

        started()
        x = np.arange(24, dtype="float32").reshape(8, 3) + 1
        rows = NamedSharding(AbstractMesh((4,), ("i",)), P("i"))
        exported = export.export(jit(lambda x: x * x.sum(), in_shardings=rows, out_shardings=rows))(x)

        @custom_partitioning
        def shares(x):
            return x / x.sum(0)

        def partition(mesh, args, result):
            part = NamedSharding(mesh, P("j"))
            return mesh, lambda x: x / lax.psum(x.sum(0), "j"), part, (part,)

        shares.def_partition(partition, sharding_rule="i j -> i j")
        y = pullback.device_put(x, NamedSharding(pullback.make_mesh((4,), ("j",), (AxisType.Auto,)), P("j")))
        for out, expected in ((exported.call(y), x * x.sum()), (jit(shares)(y), x / x.sum(0))):
            assert out.sharding == y.sharding
            for shard in out.addressable_shards:
                np.testing.assert_allclose(shard.data, expected[shard.index], rtol=1e-6)
        print("fine")
        """,
        2,
        "--devices",
        "2",
    )
    assert (status, [lines[-1] for lines in said]) == (0, ["fine"] * 2)


LOOP = """
i = started(heartbeat_timeout_seconds=4)
pids = utils.process_allgather(os.getpid())
w = pnp.ones(3)
for k in range(10**6):
    try:
        w = w - 0.1 * utils.process_allgather(np.asarray(w) * (i + 1)).mean(0)
    except errors.ProcessLostError as error:
        print(error.processes, error)
        np.save(f"{sys.argv[0]}.{i}.npy", w)
        break
    if i == VICTIM and k == 5:
        DEATH
if i == 2 and "SIGSTOP" in "DEATH":
    time.sleep(1)
    os.kill(pids[VICTIM], signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("victim", "death", "why", "status"),
    [
        (1, "os.kill(os.getpid(), signal.SIGSTOP)", "it sent no heartbeat for 4 seconds", 137),
        (1, "raise ZeroDivisionError(3)", "it ended with ZeroDivisionError: 3", 1),
        (0, "break", "it ended", 0),
    ],
    ids=["stopped", "failed", "ended"],
)
def test_a_process_is_lost(tmp_path, victim, death, why, status):
    """The others say which one and why, and save what they have."""
    program = LOOP.replace("VICTIM", str(victim)).replace("DEATH", death)
    code, said, _ = run(tmp_path, program, 3)
    assert code == status, said
    for i in {0, 1, 2} - {victim}:
        (line,) = said[i]
        assert re.match(rf"\(.*\b{victim}\b.*\) process_allgather", line), said
        assert f"process {victim} is gone: {why}" in line, said
        assert np.load(tmp_path / f"program.py.{i}.npy").shape == (3,)


STEP = """
from pullback import NamedSharding, P

def loss(w, x, y):
    hidden = pnp.tanh(x @ w["in"])
    return ((hidden @ w["out"] - y) ** 2).mean()

def step(w, x, y):
    value, g = pullback.value_and_grad(loss)(w, x, y)
    return pullback.tree.map(lambda a, b: a - 0.1 * b, w, g), value

def problem():
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
    return {"in": draw(6, 10), "out": draw(10, 1)}, draw(24, 6), draw(24, 1)

def meshed(i, x, y, w):
    mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    n = len(x) // pullback.process_count()
    mine = slice(i * n, (i + 1) * n)
    x, y = utils.host_local_array_to_global_array((x[mine], y[mine]), mesh, P("data"))
    assert not x.is_fully_addressable and len(x.addressable_shards) == pullback.local_device_count()
    return mesh, x, y, pullback.tree.map(lambda a: pullback.device_put(a, whole), w)
"""


@pytest.mark.parametrize("processes", [2, 4])
def test_training_equals_that_on_one_device(tmp_path, processes):
    """Data-parallel steps over all devices of all processes."""
    status, said, _ = run(
        tmp_path,
        """
        i = started()
        w, x, y = problem()
        mesh, xs, ys, ws = meshed(i, x, y, w)
        total = pullback.jit(lambda x: (x * x).sum())(xs)
        assert abs(float(total) - (x * x).sum()) < 1e-3
        one, many = pullback.jit(step), pullback.jit(step)
        for _ in range(5):
            w, value = one(w, x, y)
            ws, values = many(ws, xs, ys)
        assert abs(float(value) - float(values)) < 1e-6
        for name in w:
            assert np.abs(np.asarray(ws[name]) - np.asarray(w[name])).max() < 1e-6
        assert np.array_equal(utils.process_allgather({"x": xs, "i": i}, tiled=True)["x"], x)
        assert "tiled=True" in str(caught(lambda: utils.process_allgather(xs)))
        n = len(x) // pullback.process_count()
        block = utils.global_array_to_host_local_array(xs, mesh, P("data"))
        assert block.is_fully_addressable and np.array_equal(block, x[i * n : (i + 1) * n])
        same = utils.global_array_to_host_local_array(ws["in"], mesh, P())
        assert np.array_equal(same, ws["in"])
        assert "have some of its shards" in str(caught(lambda: np.asarray(xs)))

        error = caught(lambda: pullback.jit(lambda x: x.sum() * i)(xs))
        assert isinstance(error, errors.ProcessMismatchError) and "is at compiling the program" in str(error), error
        assert "all processes must run the same operations" in str(error), error
        assert float(many(ws, xs, ys)[1]) > 0
        pullback.distributed.shutdown()
        assert "after distributed.shutdown" in str(caught(lambda: many(ws, xs, ys)))
        assert np.asarray(ws["in"]).shape == (6, 10)
        print("fine")
        """,
        processes,
        "--devices",
        "2",
        start=START + STEP,
    )
    assert (status, [lines[-1:] for lines in said]) == (0, [["fine"]] * processes), said


@pytest.mark.parametrize("victim", [2, 0])
def test_a_process_is_killed_while_training(tmp_path, victim):
    """The others have the error in the step, say which process is gone, and save the parameters of the step before."""
    code, said, _ = run(
        tmp_path,
        f"""
        i = started(heartbeat_timeout_seconds=20)
        w, x, y = problem()
        mesh, x, y, w = meshed(i, x, y, w)
        train = pullback.jit(step)
        for k in range(10**6):
            if i == {victim} and k == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            before = time.monotonic()
            try:
                w, value = train(w, x, y)
            except errors.ProcessLostError as error:
                assert time.monotonic() - before < 20
                print(k, error.processes, error)
                np.savez(f"{{sys.argv[0]}}.{{i}}.npz", **w)
                error = caught(lambda: train(w, x, y))
                assert isinstance(error, errors.ProcessLostError)
                break
        """,
        3,
        "--devices",
        "2",
        start=START + STEP,
    )
    assert code == 137, said
    for i in {0, 1, 2} - {victim}:
        (line,) = (line for line in said[i] if "is gone" in line)
        assert line.startswith("5 ("), said
        assert f"process {victim} is gone: its connection ended" in line, said
        saved = np.load(tmp_path / f"program.py.{i}.npz")
        assert saved["in"].shape == (6, 10)
        assert np.isfinite(saved["out"]).all()


def test_a_process_stops_while_others_join(tmp_path):
    """They have the error in time, and are not ended when the time to join runs out."""
    code, said, _ = run(
        tmp_path,
        """
        from pullback.backends.compiler import client
        i = int(os.environ["PULLBACK_PROCESS_ID"])
        if i == 2:
            with open(sys.argv[0] + ".pid", "w") as file:
                file.write(str(os.getpid()))
            client.join = lambda group: os.kill(os.getpid(), signal.SIGSTOP)
        begin = time.monotonic()
        error = caught(lambda: started(heartbeat_timeout_seconds=2, initialization_timeout=5))
        assert isinstance(error, errors.ProcessLostError) and 2 in error.processes, error
        assert float(pullback.jit(lambda x: x + 1)(1.0)) == 2
        while time.monotonic() < begin + 12:
            time.sleep(0.1)
        print("fine")
        if i == 0:
            os.kill(int(open(sys.argv[0] + ".pid").read()), signal.SIGKILL)
        """,
        3,
    )
    assert (code, said[:2]) == (137, [["fine"], ["fine"]]), said


STOPPED = """
import threading
from pullback import NamedSharding, P

i = started(heartbeat_timeout_seconds=3)
pids = utils.process_allgather(os.getpid())
mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
rows = NamedSharding(mesh, P("data"))

def put(n):
    return pullback.make_array_from_process_local_data(rows, np.ones((pullback.local_device_count(), n), np.float32))

def called(x):
    pullback.debug.callback(lambda v: None, x.sum())
    return pnp.sin(x).mean()

small, large, mean = put(4), put(500_000), pullback.jit(lambda x: pnp.sin(x).mean())
called = pullback.jit(called)
PLACES = {
    "small": lambda k: float(mean(small)),
    "large": lambda k: float(mean(large)),
    "callback": lambda k: float(called(small)),
    "compile": lambda k: float(pullback.jit(lambda x: (x * k).mean())(small)),
    "barrier": lambda k: utils.sync_global_devices(str(k)),
}
place = PLACES["PLACE"]
for k in range(3):
    place(k)
if i == VICTIM:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGSTOP)).start()
"""


@pytest.mark.parametrize(
    ("place", "victim"), [("small", 1), ("small", 0), ("large", 1), ("callback", 0), ("compile", 1), ("barrier", 0)]
)
def test_a_stopped_process(tmp_path, place, victim):
    """The others have an error that names it within the heartbeat and five seconds, wherever they are."""
    code, said, _ = run(
        tmp_path,
        """
        while True:
            k += 1
            before = time.monotonic()
            try:
                place(k)
            except errors.ProcessLostError as error:
                print(error.processes, error)
                assert time.monotonic() - before < 3 + 5 + 5  # five for a busy machine
                assert float(pullback.jit(lambda x: x + 1)(1.0)) == 2
                os.kill(pids[VICTIM], signal.SIGKILL)
                break
        """.replace("VICTIM", str(victim)),
        2,
        start=START + STOPPED.replace('PLACE"', f'{place}"').replace("VICTIM", str(victim)),
    )
    assert code == 137, said
    assert said[1 - victim][-1].startswith(f"({victim},)"), said
    assert f"process {victim} is gone: it sent no heartbeat for 3 seconds" in said[1 - victim][-1]


@pytest.mark.parametrize("place", ["small", "large", "barrier"])
def test_interrupts_while_a_process_is_stopped(tmp_path, place):
    """Ctrl-C ends the wait at once, and what comes next waits for the program that was left."""
    code, said, _ = run(
        tmp_path,
        """
        if i == 0:
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            k += 1
            before = time.monotonic()
            try:
                place(k)
            except KeyboardInterrupt:
                error = caught(lambda: place(k))
                print("interrupted", getattr(error, "processes", error))
                os.kill(pids[1], signal.SIGKILL)
                break
        """,
        2,
        start=START + STOPPED.replace('PLACE"', f'{place}"').replace("VICTIM", "1"),
    )
    assert (code, said[0][-1:]) == (137, ["interrupted (1,)"]), said


def test_programs_that_call_python(tmp_path):
    """The call returns when the function has been called, and raises what it raises."""
    status, said, _ = run(
        tmp_path,
        """
        started()
        mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
        x = pullback.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones((1, 4), np.float32))
        seen = []

        def called(x):
            pullback.debug.callback(seen.append, x.sum())
            return x.mean()

        assert float(pullback.jit(called)(x)) == 1
        seen = utils.process_allgather(np.float32(sum(map(float, seen))))
        assert seen.sum() == 8, seen  # one of the processes calls it

        def failing(x):
            pullback.debug.callback(lambda v: 1 / 0, x.sum())
            return x.mean()

        error = caught(lambda: pullback.jit(failing)(x))
        print("ZeroDivisionError" in str(error))
        """,
        2,
        start="from pullback import NamedSharding, P\n" + START,
    )
    assert (status, sorted(lines[-1] for lines in said)) == (0, ["False", "True"]), said


def test_a_program_goes_on_after_an_interrupt(tmp_path):
    """The program that the interrupt left has its share in all processes, and the next ones are right."""
    status, said, _ = run(
        tmp_path,
        """
        twos = 2 * small
        utils.sync_global_devices("begin")
        if i == 1:
            time.sleep(2)
            print(round(float(mean(small)), 4), round(float(mean(twos)), 4))
        else:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                mean(small)
            except KeyboardInterrupt:
                print("interrupted", round(float(mean(twos)), 4))
        """,
        2,
        start=START + STOPPED.replace('PLACE"', 'small"').replace("VICTIM", "None"),
    )
    assert status == 0, said
    assert [lines[-1] for lines in said] == ["interrupted 0.9093", "0.8415 0.9093"]


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
        error = caught(lambda: started(num_processes=2, process_id=1, initialization_timeout=0.5))
        assert isinstance(error, TimeoutError) and "tried for 0.5 seconds to reach process 0" in str(error), error
        assert not pullback.distributed.is_initialized()
        error = caught(lambda: started(num_processes=2, process_id=0, initialization_timeout=0.5))
        assert isinstance(error, TimeoutError) and "waited 0.5 seconds for process 1" in str(error), error
        started()
        assert pullback.jit(lambda x: x + 1)(1.0) == 2 and utils.process_allgather(3) == [3]
        print("fine")
        """,
        1,
    )
    assert (status, said) == (0, [["fine"]])


def test_two_jobs_on_one_port(tmp_path):
    """One of them computes, and the other has an error: they do not compute together."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    program = """
        job, lost = sys.argv[1], sys.argv[0] + ".lost"
        try:
            started(initialization_timeout=15)
            print("together:", set(utils.process_allgather(np.frombuffer(job.encode(), np.uint8)).ravel().tolist()))
            while not os.path.exists(lost):
                time.sleep(0.05)
        except errors.DistributedError as error:
            print(error)
            if os.environ["PULLBACK_PROCESS_ID"] == "0":
                open(lost, "w").close()
            sys.exit(1)
    """
    path = tmp_path / "program.py"
    path.write_text(START + textwrap.dedent(program))
    command = [sys.executable, "-m", "pullback", "launch", "--processes", "2", "--port", port, str(path)]
    jobs = [
        subprocess.Popen([*command, job], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for job in "AB"
    ]
    said = [job.communicate(timeout=90)[0] for job in jobs]
    failed = [job.returncode for job in jobs]
    assert failed in ([0, 1], [1, 0]), said
    winner = failed.index(0)
    assert said[winner].count(f"together: {{{ord('AB'[winner])}}}") == 2, said
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in said[1 - winner], said
    assert "Traceback" not in said[1 - winner]


def test_programs_that_a_process_starts_inherit_no_socket(tmp_path):
    """Else a child that outlives its parent would keep the parent's connections open."""
    status, said, _ = run(
        tmp_path,
        """
        started()
        mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
        x = pullback.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
        assert float(pullback.jit(lambda x: x.sum())(x)) == 4
        print(subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout)
        """,
        2,
        "--devices",
        "2",
        start="import subprocess\nfrom pullback import NamedSharding, P\n" + START,
    )
    assert status == 0, said
    assert not [line for lines in said for line in lines if "socket:" in line]


# The launcher ---------------------------------------------------------------------------------------------------------

QUICK = "import os, signal, sys, time\ni = int(os.environ['PULLBACK_PROCESS_ID'])\n"


def test_output_has_prefixes_and_arguments_arrive(tmp_path):
    status, said, rest = run(tmp_path, "print(i)\nprint('x', file=sys.stderr)", 4, start=QUICK)
    assert (status, rest) == (0, [])
    assert said == [[str(i), "x"] for i in range(4)]


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_the_end_of_a_forked_child_leaves_the_group_alone(tmp_path, end):
    program = f"""
        started()
        utils.sync_global_devices("begin")
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks while there are threads
        if os.fork() == 0:
            {end}
        os.wait()
        utils.sync_global_devices("end")
        pullback.distributed.shutdown()
        print("fine")
    """
    status, said, _ = run(tmp_path, program, 2)
    assert (status, said) == (0, [["fine"]] * 2)


@pytest.mark.parametrize(
    ("death", "status", "described"),
    [
        ("sys.exit(7)", 7, "process 1 failed with exit status 7"),
        ("os.kill(os.getpid(), 9)", 137, "process 1 was killed by SIGKILL"),
    ],
)
def test_all_end_when_one_fails(tmp_path, death, status, described):
    program = f"if i == 1:\n    {death}\ntime.sleep(90)"
    code, _, rest = run(tmp_path, program, 3, "--grace", "0.2", start=QUICK)
    assert code == status
    assert rest[0].endswith(described)
    assert rest[1].endswith("ending process 0, process 2")


def test_one_stays_stopped_when_the_others_have_ended(tmp_path):
    """It is named, and ended after the time of grace; one that is at work is named, and waited for."""
    program = "if i == 1:\n    os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(4 * (i == 2))\nprint('end')"
    code, said, rest = run(tmp_path, program, 3, "--grace", "1", start=QUICK)
    assert (code, said) == (128 + 15, [["end"], [], ["end"]])
    assert [re.sub(r"\d+`", "PID`", line.removeprefix("python -m pullback launch: ")) for line in rest] == [
        "waiting for process 1 (stopped), process 2; all others have ended",
        "waiting for process 1 (stopped); all others have ended. Ends in 1 seconds without `kill -CONT PID`",
        "ending process 1",
    ]


def test_a_stopped_process_goes_on_in_time(tmp_path):
    program = """
    me = sys.argv[0] + ".pid"
    if i == 1:
        with open(me, "w") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    elif os.fork() == 0:  # it goes on when process 0 has ended
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        time.sleep(3)
        os.kill(int(open(me).read()), signal.SIGCONT)
        os._exit(0)
    print("end")
    """
    code, said, rest = run(tmp_path, program, 2, "--grace", "30", start=QUICK)
    assert (code, said) == (0, [["end"], ["end"]])
    assert len(rest) == 1
    assert "waiting for process 1 (stopped)" in rest[0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_nobody_reads_what_the_launcher_says(tmp_path):
    """The processes go on, and the exit status is theirs."""
    path = tmp_path / "program.py"
    path.write_text(QUICK + "print(i)\ntime.sleep(i)\nopen(f'{sys.argv[0]}.{i}', 'w').close()\nsys.exit(5 - 5 * i)")
    command = [sys.executable, "-m", "pullback", "launch", "--processes", "2", str(path)]
    with open("/dev/full", "w") as full:
        assert subprocess.run(command, stdout=full, stderr=full, timeout=60, check=False).returncode == 5
    assert (tmp_path / "program.py.1").exists()


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
