"""The place of this process in a job, as the scheduler or launcher that started it tells.

:data:`CLUSTERS` is the table of what is known. To add a row, write functions from the environment to the number of this
process, how many there are, and the address of process 0; a function is called only where ``initialize`` needs what
it returns. ``kubernetes.py`` and ``mpi.py``, which ask more than the environment, are beside this file.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pullback.backends.processes import kubernetes, mpi
from pullback.core.errors import ArgumentError

Environment = Mapping[str, str]


class Cluster(NamedTuple):
    """A kind of cluster.

    Attributes:
      name: the name by which ``initialize`` knows it.
      starter: what starts its processes, for error messages.
      variables: the environment variables by which it is recognised: all must be set.
      number: returns the number of this process.
      count: returns how many processes there are.
      address: returns the host and port of process 0.
      local: returns the number of this process on its machine, and how many processes run there; None if each machine
        has one.
      token: returns a secret that all processes of the job have; an empty text if there is none.
      also: whether this process runs there, beyond what the variables say.
      other_names: further names: those of JAX, and of launchers that set the same variables.
    """

    name: str
    starter: str
    variables: tuple[str, ...]
    number: Callable[[Environment], int]
    count: Callable[[Environment], int]
    address: Callable[[Environment], str]
    local: Callable[[Environment], tuple[int, int]] | None = None
    token: Callable[[Environment], str] = lambda environment: ""
    also: Callable[[], bool] = lambda: True
    other_names: tuple[str, ...] = ()

    def missing(self, environment: Environment) -> list[str]:
        """Return the variables of this kind of cluster that are not set."""
        return [name for name in self.variables if not environment.get(name)]

    def devices(self, environment: Environment) -> tuple[int, ...] | None:
        """Return the GPUs of the machine that this process should use; None for all that it sees."""
        if self.local is None:
            return None
        own, on_machine = self.local(environment)
        visible = environment.get("CUDA_VISIBLE_DEVICES")
        divided = visible is not None and len(visible.split(",")) < on_machine
        return None if on_machine == 1 or divided else (own,)


def find(environment: Environment, name: str | None) -> Cluster | None:
    """Return the kind of cluster that this process runs on, or None if none is recognised.

    Args:
      environment: the environment variables of this process.
      name: the name of the kind, or None to look for one.

    Raises:
      ArgumentError: there is no kind of this name, or its variables are missing (a ValueError).
    """
    if name is None:
        return next((c for c in CLUSTERS if not c.missing(environment) and c.also()), None)
    cluster = next((c for c in CLUSTERS if name in (c.name, *c.other_names)), None)
    if cluster is None:
        names = ", ".join(repr(c.name) for c in CLUSTERS)
        raise ArgumentError(f"cluster must be one of {names}, or 'deactivate', got {name!r}")
    missing = cluster.missing(environment)
    if missing:
        raise ArgumentError(
            f"cluster={name!r}: {' and '.join(missing)} must be in the environment; {cluster.starter} sets them. "
            f"Start the program with it, or pass coordinator_address, num_processes and process_id"
        )
    return cluster


def looked_for() -> str:
    """Return what is looked for, by kind of cluster, for the error where none is recognised."""
    rows = (f"{c.name} ({', '.join(c.variables) or 'the module mpi4py.MPI, imported'})" for c in CLUSTERS)
    return "no cluster is recognised by its environment variables: " + "; ".join(rows)


def _number(environment: Environment, name: str) -> int:
    text = environment.get(name, "")
    if not text.strip().isdecimal():
        raise ArgumentError(f"the environment variable {name} must be an integer from 0, got {text!r}")
    return int(text)


def _reads(name: str) -> Callable[[Environment], int]:
    return lambda environment: _number(environment, name)


def _both(own: str, on_machine: str) -> Callable[[Environment], tuple[int, int]]:
    return lambda environment: (_number(environment, own), _number(environment, on_machine))


def _port(job: str) -> int:
    """Return a port for a job, the same in all its processes, above those that Linux gives to outgoing connections."""
    return 61440 + zlib.crc32(job.encode()) % 4096


def _first_host(hosts: str) -> str:
    """Return the first host of a list in Slurm's form: ``node003`` of ``node[003-007,9],gpu1``."""
    first = re.split(r",(?![^\[]*\])", hosts)[0]
    return re.sub(r"\[([^\]]*)\]", lambda found: re.split("[,-]", found[1])[0], first)


def _tasks_on(node: int, tasks: str) -> int:
    """Return how many tasks run on a node, from a list in Slurm's form: ``2(x3),1`` is 2, 2, 2, 1."""
    counts: list[int] = []
    for part in tasks.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if found is None:
            raise ArgumentError(f"SLURM_STEP_TASKS_PER_NODE must be like '2(x3),1', got {tasks!r}")
        counts += [int(found[1])] * int(found[2] or 1)
    if node >= len(counts):
        raise ArgumentError(f"SLURM_STEP_TASKS_PER_NODE={tasks!r} does not say how many tasks run on node {node}")
    return counts[node]


def _slurm_address(environment: Environment) -> str:
    job = f"{environment['SLURM_JOB_ID']}.{environment.get('SLURM_STEP_ID', '')}"
    return f"{_first_host(environment['SLURM_STEP_NODELIST'])}:{_port(job)}"


def _slurm_local(environment: Environment) -> tuple[int, int]:
    node = _number(environment, "SLURM_NODEID")
    return _number(environment, "SLURM_LOCALID"), _tasks_on(node, environment.get("SLURM_STEP_TASKS_PER_NODE", "1"))


def _open_mpi_address(environment: Environment) -> str:
    """Return the address where ``mpirun`` runs, whose machine also runs process 0 unless it is told otherwise."""
    space = environment.get("PMIX_NAMESPACE", "")
    port = _port(environment.get("OMPI_MCA_ess_base_jobid") or space)
    if _number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE") == _number(environment, "OMPI_COMM_WORLD_SIZE"):
        return f"localhost:{port}"
    hosts = re.findall(r"tcp[4]?://([\d.,]+):", environment.get("OMPI_MCA_orte_hnp_uri", ""))
    addresses = [a for some in hosts for a in some.split(",") if not a.startswith("127.")]
    return f"{addresses[0] if addresses else _launcher_host('openmpi', space)}:{port}"


def _launcher_host(name: str, space: str) -> str:
    """Return the host in the name that PRRTE, the launcher of Open MPI 5, gives a job: ``prterun-HOST-PROCESS@1``."""
    found = re.fullmatch(r"prterun-(.+)-\d+@\d+", space)
    if found is None:
        raise _no_address(name)
    return found[1]


def _pmix_address(environment: Environment) -> str:
    space = environment["PMIX_NAMESPACE"]
    return f"{_launcher_host('pmix', space)}:{_port(space)}"


def _pmix_count(environment: Environment) -> int:
    raise ArgumentError(
        "cluster='pmix': the environment does not say how many processes there are: pass num_processes, or import "
        "mpi4py.MPI first, which tells it (cluster='mpi4py')"
    )


def _hydra_address(environment: Environment) -> str:
    """Return the address for processes of one machine: ``mpiexec`` of MPICH names no machine.

    Its processes have the same parent, a proxy; the parent's number makes the port.
    """
    if _number(environment, "MPI_LOCALNRANKS") != _number(environment, "PMI_SIZE"):
        raise _no_address("mpich")
    return f"localhost:{_port(f'hydra {os.getppid()}')}"


def _no_address(name: str) -> ArgumentError:
    return ArgumentError(
        f"cluster={name!r}: the environment does not say where process 0 runs, and the processes are on several "
        "machines: pass coordinator_address, or import mpi4py.MPI first, which tells it (cluster='mpi4py')"
    )


def _torchrun_address(environment: Environment) -> str:
    port = _number(environment, "MASTER_PORT")
    taken = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun itself listens there
    return f"{environment['MASTER_ADDR']}:{_port(f'torchrun {port}') if taken else port}"


def _listed_hosts(environment: Environment) -> list[str]:
    """Return the hosts of SageMaker's list."""
    try:
        hosts: Any = json.loads(environment["SM_HOSTS"])
    except json.JSONDecodeError:
        hosts = None
    if not isinstance(hosts, list) or environment["SM_CURRENT_HOST"] not in hosts:
        raise ArgumentError(
            f"SM_HOSTS must be a list of hosts that has SM_CURRENT_HOST, {environment['SM_CURRENT_HOST']!r}; got "
            f"{environment['SM_HOSTS']!r}"
        )
    return hosts


def _sagemaker_address(environment: Environment) -> str:
    return f"{_listed_hosts(environment)[0]}:{_port(environment.get('TRAINING_JOB_NAME', ''))}"


def _workers(environment: Environment) -> list[str]:
    return environment["TPU_WORKER_HOSTNAMES"].split(",")


CLUSTERS = (
    Cluster(
        "mpi4py", "mpiexec", (), lambda _: mpi.number(), lambda _: mpi.count(), lambda _: mpi.address(),
        lambda _: mpi.local(), also=mpi.loaded,
    ),
    Cluster(
        "openmpi", "Open MPI's mpirun",
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        _reads("OMPI_COMM_WORLD_RANK"), _reads("OMPI_COMM_WORLD_SIZE"), _open_mpi_address,
        _both("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        lambda environment: environment.get("OMPI_MCA_orte_precondition_transports", ""), other_names=("ompi",),
    ),
    Cluster(
        "mpich", "mpiexec of MPICH or Intel MPI", ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        _reads("PMI_RANK"), _reads("PMI_SIZE"), _hydra_address, _both("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        other_names=("intelmpi",),
    ),
    Cluster(
        "torchrun", "torchrun", ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        _reads("RANK"), _reads("WORLD_SIZE"), _torchrun_address, _both("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ),
    Cluster(
        "slurm", "Slurm's srun",
        ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS"),
        _reads("SLURM_PROCID"),
        lambda environment: _number(
            environment, "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS"
        ),
        _slurm_address, _slurm_local,
    ),
    Cluster(
        "pmix", "a launcher with PMIx, such as prterun,", ("PMIX_NAMESPACE", "PMIX_RANK"),
        _reads("PMIX_RANK"), _pmix_count, _pmix_address,
    ),
    Cluster(
        "kubernetes", "an Indexed Job or a JobSet", ("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"),
        kubernetes.number, kubernetes.count, lambda environment: f"{kubernetes.host(environment)}:8476",
        other_names=("k8s",),
    ),
    Cluster(
        "sagemaker", "SageMaker", ("SM_HOSTS", "SM_CURRENT_HOST"),
        lambda environment: _listed_hosts(environment).index(environment["SM_CURRENT_HOST"]),
        lambda environment: len(_listed_hosts(environment)), _sagemaker_address,
    ),
    Cluster(
        "tpu", "a service with workers by host name", ("TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"),
        _reads("TPU_WORKER_ID"), lambda environment: len(_workers(environment)),
        lambda environment: f"{_workers(environment)[0]}:8476",
    ),
)  # fmt: skip
"""The kinds of clusters, in the order in which they are looked for: what a user starts within a job comes first."""
