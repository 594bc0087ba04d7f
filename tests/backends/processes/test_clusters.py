"""The place of a process in a cluster: by environments that were recorded, and in real jobs on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from pullback import distributed
from pullback.backends.processes import clusters, kubernetes
from pullback.backends.processes import distributed as inside
from pullback.core.errors import ArgumentError, DistributedError

OPEN_MPI_4 = {
    "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_MCA_ess_base_jobid": "98828289",
    "OMPI_MCA_orte_hnp_uri": "98828288.0;tcp://127.0.0.1,192.0.2.2,10.1.0.4:56191;tcp6://[fd00::2]:34245",
    "OMPI_MCA_orte_precondition_transports": "f8f74c6416b9ed0c-f817ef2e310f731b",
}  # fmt: skip
OPEN_MPI_5 = {
    "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "prterun-node-7-18541@1", "PMIX_RANK": "2",
}  # fmt: skip
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "HYDI_CONTROL_FD": "7"}
SLURM = {
    "SLURM_JOB_ID": "41", "SLURM_STEP_ID": "2", "SLURM_STEP_NODELIST": "node[007-008,012],gpu1", "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1", "SLURM_NODEID": "2", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
}  # fmt: skip
TORCHRUN = {
    "MASTER_ADDR": "10.0.0.9", "MASTER_PORT": "29500", "WORLD_SIZE": "8", "RANK": "6", "LOCAL_RANK": "2",
    "LOCAL_WORLD_SIZE": "4",
}  # fmt: skip
SAGEMAKER = {"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2", "TRAINING_JOB_NAME": "fit-4"}
TPU = {"TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2,10.0.0.3", "TPU_WORKER_ID": "2"}


@pytest.mark.parametrize(
    ("environment", "name", "host", "count", "number", "devices"),
    [
        (OPEN_MPI_4, "openmpi", "192.0.2.2", 4, 3, (1,)),
        (OPEN_MPI_5, "openmpi", "node-7", 4, 2, (0,)),
        ({**OPEN_MPI_5, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "openmpi", "localhost", 4, 2, (0,)),
        (MPICH, "mpich", "localhost", 2, 1, (1,)),
        (SLURM, "slurm", "node007", 7, 5, (1,)),
        ({**SLURM, "SLURM_NODEID": "3", "SLURM_LOCALID": "0"}, "slurm", "node007", 7, 5, None),  # alone on its machine
        ({**SLURM, "CUDA_VISIBLE_DEVICES": "3"}, "slurm", "node007", 7, 5, None),  # Slurm gave it one of the GPUs
        ({**SLURM, "CUDA_VISIBLE_DEVICES": "0,1"}, "slurm", "node007", 7, 5, (1,)),
        (TORCHRUN, "torchrun", "10.0.0.9", 8, 6, (2,)),
        (SAGEMAKER, "sagemaker", "algo-1", 2, 1, None),
        (TPU, "tpu", "10.0.0.1", 3, 2, None),
        ({**SLURM, **OPEN_MPI_4}, "openmpi", "192.0.2.2", 4, 3, (1,)),  # mpirun within an allocation of Slurm
        ({**SLURM, **TORCHRUN}, "torchrun", "10.0.0.9", 8, 6, (2,)),  # torchrun started by srun, once on each machine
    ],
)
def test_recorded_environments(environment, name, host, count, number, devices):
    cluster = clusters.find(environment, None)
    assert cluster is clusters.find(environment, name)
    assert cluster.name == name
    where, _, port = cluster.address(environment).rpartition(":")
    assert (where, cluster.count(environment), cluster.number(environment)) == (host, count, number)
    assert cluster.devices(environment) == devices
    assert 1024 < int(port) < 65536
    ours = {key: "0" if key.endswith(("RANK", "PROCID", "WORKER_ID")) else value for key, value in environment.items()}
    assert cluster.address(ours) == cluster.address(environment), "all processes of a job get the same address"


def test_a_launcher_that_knows_pmix_alone():
    environment = {"PMIX_NAMESPACE": "prterun-node-7-18541@1", "PMIX_RANK": "2"}
    cluster = clusters.find(environment, None)
    assert (cluster.name, cluster.number(environment), cluster.devices(environment)) == ("pmix", 2, None)
    assert cluster.address(environment).startswith("node-7:")
    with pytest.raises(ArgumentError, match="how many processes there are: pass num_processes"):
        cluster.count(environment)
    with pytest.raises(ArgumentError, match="cluster='pmix': the environment does not say where process 0 runs"):
        cluster.address({**environment, "PMIX_NAMESPACE": "job-1"})


def test_ports_of_jobs_and_steps_differ():
    slurm = clusters.find(SLURM, None)
    addresses = {slurm.address({**SLURM, "SLURM_STEP_ID": str(step)}) for step in range(20)}
    assert len(addresses) == 20
    assert clusters.find(TORCHRUN, None).address(TORCHRUN) == "10.0.0.9:29500"
    with_agent = {**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True"}  # then torchrun listens at its port
    assert clusters.find(TORCHRUN, None).address(with_agent) != "10.0.0.9:29500"


@pytest.mark.parametrize(
    ("hosts", "first"),
    [("n1", "n1"), ("n1,n2", "n1"), ("n[3-5]", "n3"), ("a[01,07]b[2-3],c", "a01b2"), ("x-[9]", "x-9")],
)
def test_the_first_host_of_a_list(hosts, first):
    assert clusters._first_host(hosts) == first


@pytest.mark.parametrize(
    ("environment", "name", "message"),
    [
        ({}, "slurm", "SLURM_JOB_ID and SLURM_STEP_NODELIST and .* must be in the environment; Slurm's srun sets them"),
        ({}, "lsf", "cluster must be one of 'mpi4py', 'openmpi', .* or 'deactivate', got 'lsf'"),
        ({}, 3, "cluster must be one of"),
    ],
)
def test_a_cluster_that_is_not_there(environment, name, message):
    with pytest.raises(ArgumentError, match=message):
        clusters.find(environment, name)


@pytest.mark.parametrize(
    ("environment", "ask", "message"),
    [
        ({**MPICH, "PMI_SIZE": "9"}, "address", "does not say where process 0 runs.*coordinator_address.*mpi4py"),
        ({**OPEN_MPI_5, "PMIX_NAMESPACE": "other"}, "address", "does not say where process 0 runs"),
        ({**SLURM, "SLURM_PROCID": "x"}, "number", "SLURM_PROCID must be an integer from 0, got 'x'"),
        ({**SLURM, "SLURM_NODEID": "4"}, "devices", "'2\\(x3\\),1' does not say how many tasks run on node 4"),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "2*3"}, "devices", "must be like '2\\(x3\\),1', got '2\\*3'"),
        ({**SAGEMAKER, "SM_CURRENT_HOST": "algo-9"}, "number", "SM_HOSTS must be a list of hosts that has"),
        ({**SAGEMAKER, "SM_HOSTS": "algo-1"}, "count", "SM_HOSTS must be a list of hosts that has"),
    ],
)
def test_environments_that_make_no_sense(environment, ask, message):
    with pytest.raises(ArgumentError, match=message):
        getattr(clusters.find(environment, None), ask)(environment)


@pytest.fixture
def bare(monkeypatch):
    """The environment without variables that a cluster or a launcher sets."""
    for name in os.environ:
        if name.startswith(("PULLBACK_", "JAX_", "OMPI_", "PMI", "SLURM_", "TPU_", "SM_")):
            monkeypatch.delenv(name)
    return monkeypatch


def test_what_initialize_takes_from_where(bare):
    for name, value in SLURM.items():
        bare.setenv(name, value)
    known = inside._Known(None, None)
    assert known.argument(None, "num_processes") == 7
    assert known.argument(3, "num_processes") == 3
    bare.setenv("JAX_NUM_PROCESSES", "4")
    assert known.argument(None, "num_processes") == "4", "the variables of Pullback and JAX come before the cluster"
    assert inside._Known("slurm", None).argument(None, "num_processes") == 7, "a cluster that is named comes first"
    assert inside._Known(None, "slurm").argument(None, "process_id") == 5
    assert (known.devices(), known.token()) == ((1,), "")
    assert inside._Known(None, None).devices() is None, "nothing was asked of the cluster"


def test_the_token_of_open_mpi_is_that_of_its_job(bare):
    for name, value in OPEN_MPI_4.items():
        bare.setenv(name, value)
    known = inside._Known(None, None)
    assert known.argument(None, "process_id") == 3
    assert known.token() == OPEN_MPI_4["OMPI_MCA_orte_precondition_transports"]
    bare.setenv("PULLBACK_JOB_TOKEN", "mine")
    assert known.token() == "mine"


def test_errors_of_initialize(bare):
    with pytest.raises(
        ArgumentError, match=r"JAX_COORDINATOR_ADDRESS are not set, and no cluster is recognised.*slurm"
    ):
        distributed.initialize()
    for name, value in SLURM.items():
        bare.setenv(name, value)
    with pytest.raises(ArgumentError, match="are not set, and no cluster is looked for"):
        distributed.initialize(cluster="deactivate")
    with pytest.raises(ArgumentError, match="are the same argument, got 'slurm' and 'openmpi'"):
        distributed.initialize(cluster="slurm", cluster_detection_method="openmpi")


# Kubernetes -----------------------------------------------------------------------------------------------------------

JOB_NAME, INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"
POD = {
    "metadata": {"name": "fit-2-x7k", "labels": {JOB_NAME: "fit"}, "annotations": {INDEX: "2"}},
    "spec": {"subdomain": "workers"},
    "status": {"phase": "Running", "podIP": "10.244.0.9"},
}
JOB = {"spec": {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}}
SET = {
    "jobset.sigs.k8s.io/jobset-name": "big", "jobset.sigs.k8s.io/replicatedjob-name": "trainers",
    "jobset.sigs.k8s.io/replicatedjob-replicas": "3", "jobset.sigs.k8s.io/job-index": "2",
    JOB_NAME: "big-trainers-2",
}  # fmt: skip
IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": "2"}
OWN = "/api/v1/namespaces/science/pods?fieldSelector=status.podIP%3D10.244.0.9"


def pods(*found):
    """What the server answers to a list: those pods, and two that are not meant: one has ended, one is another."""
    ended, other = {**POD, "status": {"phase": "Failed", "podIP": "10.244.9.9"}}, {**POD, "metadata": {}}
    return {"items": [ended, other, *found]}


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A dictionary from a path to what the server answers, for the pod with the address 10.244.0.9."""
    (tmp_path / "namespace").write_text("science\n")
    (tmp_path / "token").write_text("secret\n")
    monkeypatch.setattr(kubernetes, "ACCOUNT", tmp_path)
    monkeypatch.setattr(kubernetes.socket, "getaddrinfo", lambda *args: [(0, 0, 0, "", ("10.244.0.9", 0))])
    answers: dict[str, object] = {}
    monkeypatch.setattr(kubernetes, "_ask", lambda environment, path: answers[path])
    return answers


def test_an_indexed_job(server):
    server[OWN] = pods(POD)
    server["/apis/batch/v1/namespaces/science/jobs/fit"] = JOB
    cluster = clusters.find(IN_POD, "k8s")
    assert cluster is clusters.find(IN_POD, None)
    assert (cluster.number(IN_POD), cluster.count(IN_POD)) == (2, 4)
    assert cluster.address(IN_POD) == "fit-0.workers:8476"


def test_an_indexed_job_without_names(server, monkeypatch):
    server[OWN] = pods({**POD, "spec": {}})
    asked = "/api/v1/namespaces/science/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dfit"
    first = {"metadata": {"annotations": {INDEX: "0"}}, "status": {"phase": "Pending"}}
    replies = [pods(), pods(first), pods({**first, "status": {"phase": "Running", "podIP": "10.244.0.7"}})]
    monkeypatch.setattr(kubernetes, "_ask", lambda _, path: replies.pop(0) if path == asked else server[path])
    monkeypatch.setattr(kubernetes.time, "sleep", lambda seconds: None)
    assert kubernetes.host(IN_POD) == "10.244.0.7"
    assert replies == []


def test_a_job_set(server):
    server[OWN] = pods({**POD, "metadata": {**POD["metadata"], "labels": SET}})
    server["/apis/batch/v1/namespaces/science/jobs/big-trainers-2"] = JOB
    cluster = clusters.find(IN_POD, None)
    assert (cluster.number(IN_POD), cluster.count(IN_POD)) == (2 * 4 + 2, 3 * 4)
    assert cluster.address(IN_POD) == "big-trainers-0-0.workers:8476"


def test_pods_without_a_job(server):
    server[OWN] = pods()
    with pytest.raises(DistributedError, match=r"knows no running pod of a job with the address 10\.244\.0\.9"):
        kubernetes.count(IN_POD)
    server[OWN] = pods({**POD, "metadata": {"name": "fit-2", "annotations": {INDEX: "2"}}})
    with pytest.raises(ArgumentError, match="the pod 'fit-2' belongs to no job"):
        kubernetes.count(IN_POD)


def test_a_pod_without_an_account(monkeypatch, tmp_path):
    monkeypatch.setattr(kubernetes, "ACCOUNT", tmp_path / "none")
    with pytest.raises(ArgumentError, match=r"no service account.*PULLBACK_COORDINATOR_ADDRESS"):
        kubernetes.count(IN_POD)


CERTIFICATE = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
               "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the server's certificate, is missing")
def test_the_server_is_asked_over_https(monkeypatch, tmp_path):
    import http.server
    import ssl
    import threading

    subprocess.run([*CERTIFICATE, "-keyout", "key", "-out", "ca.crt"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "namespace").write_text("science")
    (tmp_path / "token").write_text("secret")
    monkeypatch.setattr(kubernetes, "ACCOUNT", tmp_path)

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.path.endswith("/jobs/fit") and self.headers["Authorization"] == "Bearer secret"
            self.send_response(200 if known else 403)
            self.end_headers()
            self.wfile.write(json.dumps(JOB if known else {}).encode())

        def log_message(self, *args):
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.crt", tmp_path / "key")
    with http.server.HTTPServer(("127.0.0.1", 0), Server) as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        port = str(made.server_address[1])
        environment = {**IN_POD, "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        assert kubernetes._parallelism(environment, {JOB_NAME: "fit"}) == 4
        with pytest.raises(DistributedError, match=r"refused .*/other with status 403.*must be allowed to list pods"):
            kubernetes._parallelism(environment, {JOB_NAME: "other"})
        made.shutdown()
    with pytest.raises(DistributedError, match="Kubernetes did not answer /apis/batch"):
        kubernetes._parallelism(environment, {JOB_NAME: "fit"})


# Real jobs ------------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import pullback
import pullback.numpy as jnp

pullback.distributed.initialize(initialization_timeout=60)
mesh = pullback.make_mesh((pullback.device_count(),), ("i",))
x = pullback.make_array_from_process_local_data(
    pullback.NamedSharding(mesh, pullback.P("i")), np.float32([pullback.process_index() + 1])
)
print(f"{pullback.process_index()} of {pullback.process_count()}: {pullback.jit(jnp.sum)(x)}", flush=True)
"""


def output_of(command, tmp_path, program=PROGRAM, **variables):
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    kept = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | variables
    done = subprocess.run(
        [*command, sys.executable, str(tmp_path / "program.py")],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(line for line in done.stdout.splitlines() if line[:1].isdigit())


THREE = [f"{i} of 3: 6.0" for i in range(3)]
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="Debian's package openmpi-bin is missing")
def test_open_mpi(tmp_path):
    assert output_of(OPEN_MPI, tmp_path) == THREE


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="Debian's package openmpi-bin is missing")
def test_mpi4py_in_open_mpi(tmp_path):
    pytest.importorskip("mpi4py", reason="mpi4py is missing")
    assert output_of(OPEN_MPI, tmp_path, "import mpi4py.MPI\n" + PROGRAM) == THREE


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun.mpich") is None, reason="Debian's package mpich is missing")
def test_mpich(tmp_path):
    assert output_of(["mpirun.mpich", "-n", "3"], tmp_path) == THREE


@pytest.fixture
def slurm(tmp_path):
    """Run Slurm with this machine as its only node; return the path of its configuration."""
    missing = [name for name in ("srun", "slurmctld", "slurmd", "munged") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root, and Debian's packages slurm-wlm and munge; missing: {missing}")
    name = os.uname().nodename
    for folder in ("state", "spool", "munge"):
        (tmp_path / folder).mkdir(mode=0o755)
    key, socket = tmp_path / "munge/key", tmp_path / "munge/socket"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        textwrap.dedent(
            f"""
            ClusterName=alone
            SlurmctldHost={name}(127.0.0.1)
            SlurmctldPort={27000 + os.getpid() % 1000}
            SlurmdPort={28000 + os.getpid() % 1000}
            SlurmUser=root
            AuthType=auth/munge
            AuthInfo=socket={socket}
            StateSaveLocation={tmp_path}/state
            SlurmdSpoolDir={tmp_path}/spool
            SlurmctldPidFile={tmp_path}/slurmctld.pid
            SlurmdPidFile={tmp_path}/slurmd.pid
            ProctrackType=proctrack/linuxproc
            TaskPlugin=task/none
            ReturnToService=2
            NodeName={name} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
            PartitionName=all Nodes={name} Default=YES State=UP
            """
        )
    )
    files = [f"--key-file={key}", f"--socket={socket}", f"--pid-file={tmp_path}/munged.pid"]
    files += [f"--seed-file={tmp_path}/seed", f"--log-file={tmp_path}/munged.log"]
    commands = [["munged", "--foreground", "--force", *files], ["slurmctld", "-D", "-f", str(conf)]]
    commands.append(["slurmd", "-D", "-f", str(conf), "-N", name])
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for c in commands]
    yield conf
    for process in reversed(running):
        process.terminate()
        process.wait(20)


@pytest.mark.slow
def test_slurm(slurm, tmp_path):
    said = output_of(["srun", "--overcommit", "-n", "3"], tmp_path, SLURM_CONF=str(slurm))
    assert said == THREE
