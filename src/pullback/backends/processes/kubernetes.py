"""The place of this process in a job of Kubernetes, asked from the cluster's server.

The server knows the pod that this process runs in, by its address, and the Indexed Job or the JobSet that the pod
belongs to. It is asked over HTTPS with the pod's service account, which must be allowed to list pods and to get jobs.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pullback.core import systems
from pullback.core.errors import ArgumentError, DistributedError, DistributedTimeoutError

ACCOUNT = Path(systems.SERVICE_ACCOUNT)
"""Where a pod finds the token of its service account, the server's certificate and the name of its namespace."""

PATIENCE = 300.0
"""After how many seconds without an address of process 0 to give up."""

_BY_HAND = "set PULLBACK_COORDINATOR_ADDRESS, PULLBACK_NUM_PROCESSES and PULLBACK_PROCESS_ID in the manifest"
_JOB, _INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"
_SET = "jobset.sigs.k8s.io/"


def number(environment: Mapping[str, str]) -> int:
    """Return the number of this process: its index in its job, after the processes of the set's jobs before it."""
    index = environment["JOB_COMPLETION_INDEX"]
    if not index.isdecimal():
        raise ArgumentError(f"the environment variable JOB_COMPLETION_INDEX must be an integer from 0, got {index!r}")
    labels = _labels(_pod(environment))
    before = int(labels.get(f"{_SET}job-index", 0))
    return int(index) + (before * _parallelism(environment, labels) if before else 0)


def count(environment: Mapping[str, str]) -> int:
    """Return how many processes there are: the pods that the job runs at once, in all jobs of the set."""
    labels = _labels(_pod(environment))
    return _parallelism(environment, labels) * int(labels.get(f"{_SET}replicatedjob-replicas", 1))


def host(environment: Mapping[str, str]) -> str:
    """Return the host of process 0: its name where the job has a service with names, otherwise its address."""
    pod = _pod(environment)
    labels, subdomain = _labels(pod), pod["spec"].get("subdomain")
    job = labels[_JOB]
    if f"{_SET}jobset-name" in labels:
        job = f"{labels[f'{_SET}jobset-name']}-{labels[f'{_SET}replicatedjob-name']}-0"
    if subdomain:
        return f"{job}-0.{subdomain}"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for first in _pods(environment, "0", labelSelector=f"{_JOB}={job}"):
            if first["status"].get("podIP"):
                return str(first["status"]["podIP"])
        time.sleep(0.5)
    raise DistributedTimeoutError(f"the first pod of the job {job} got no address within {PATIENCE:.0f} seconds")


def _parallelism(environment: Mapping[str, str], labels: Mapping[str, str]) -> int:
    job = _ask(environment, f"/apis/batch/v1/namespaces/{_namespace()}/jobs/{labels[_JOB]}")["spec"]
    return int(job.get("parallelism", 1))


def _pod(environment: Mapping[str, str]) -> Any:
    """Return the pod of this process, by its address: the host's name lacks the last part of the pod's."""
    own = socket.getaddrinfo(socket.gethostname(), None)[0][4][0]
    found = _pods(environment, environment["JOB_COMPLETION_INDEX"], fieldSelector=f"status.podIP={own}")
    if not found:
        raise DistributedError(f"Kubernetes knows no running pod of a job with the address {own}. Else {_BY_HAND}")
    return found[0]


def _pods(environment: Mapping[str, str], index: str, **selector: str) -> list[Any]:
    """Return the pods of jobs that a selector chooses, have an index in their job, and have not ended."""
    path = f"/api/v1/namespaces/{_namespace()}/pods?{urllib.parse.urlencode(selector)}"
    return [
        pod
        for pod in _ask(environment, path)["items"]
        if pod["metadata"].get("annotations", {}).get(_INDEX) == index
        and pod["status"].get("phase") not in ("Failed", "Succeeded")
    ]


def _labels(pod: Any) -> Mapping[str, str]:
    labels: Mapping[str, str] = pod["metadata"].get("labels", {})
    if _JOB not in labels:
        raise ArgumentError(
            f"cluster='kubernetes': the pod {pod['metadata'].get('name')!r} belongs to no job. Run the program in an "
            "Indexed Job or a JobSet, or pass coordinator_address, num_processes and process_id"
        )
    return labels


def _namespace() -> str:
    return _account("namespace").strip()


def _account(name: str) -> str:
    try:
        return (ACCOUNT / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"cluster='kubernetes': the pod has no service account to ask the server with ({error}). Give it one, or "
            f"{_BY_HAND}"
        ) from None


def _ask(environment: Mapping[str, str], path: str) -> Any:
    """Return what the server answers to a request, as data."""
    name, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    request = urllib.request.Request(
        f"https://{server}{path}", headers={"Authorization": f"Bearer {_account('token').strip()}"}
    )
    try:
        context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise DistributedError(
            f"Kubernetes refused {path} with status {error.code}: the pod's service account must be allowed to "
            f"list pods and to get jobs. Or {_BY_HAND}"
        ) from None
    except OSError as error:
        raise DistributedError(f"Kubernetes did not answer {path}: {error}") from None
