"""The job files of the documentation: Kubernetes knows every field, and what they start are processes of one run."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from processes import ended, free_address, started
from quick_programs import flags
from served import served

import jaxeval
from jaxeval.cli.processes import Processes

JOBS = Path(__file__).parents[1] / "docs" / "jobs"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
#: A board of few resamples, without what is different from run to run.
QUICK = ["--resamples", "20", "--seed", "3"]


def read(name):
    return yaml.safe_load((JOBS / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Two files of votes."""
    folder, table = tmp_path_factory.mktemp("data") / "votes", jaxeval.simulate_votes(600, 6, seed=2)
    folder.mkdir()
    table[:200].to_csv(folder / "0.csv", index=False)
    table[200:].to_csv(folder / "1.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def expected(votes):
    return jaxeval.leaderboard(jaxeval.read_battles(votes), n_resamples=20, seed=3)


def check_run(processes, out, expected):
    """One of two processes prints and writes the board of all votes."""
    codes, printed, errors = ended(processes)
    assert codes == [0, 0], errors
    assert [bool(text) for text in printed] == [True, False]
    board = pd.read_csv(out)
    assert list(board["model"]) == list(expected["model"])
    assert board["rating"].to_numpy() == pytest.approx(expected["rating"].to_numpy(), abs=1e-6)
    assert "600 battles between 6 models" in printed[0]


def pods(count, environment, name_of_first):
    """The environment of every pod, as Kubernetes makes it; the first pod is here."""
    address = free_address()
    assert environment["JAX_COORDINATOR_ADDRESS"]["value"].rpartition(":")[0] == name_of_first
    found = []
    for index in range(count):
        # Kubernetes sets the first two in every pod, and in that of an indexed job.
        own = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": str(index)}
        for name, entry in environment.items():
            field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            assert field in (None, INDEX)
            own[name] = entry["value"] if field is None else str(index)
        found.append({**own, "JAX_COORDINATOR_ADDRESS": address})
    return found


@pytest.mark.parametrize(
    ("name", "model"), [("jobset.yaml", "JobsetV1alpha2JobSet"), ("trainjob.yaml", "TrainerV1alpha1TrainJob")]
)
def test_kubernetes_knows_every_field(name, model):
    from kubeflow_trainer_api import models  # hundreds of classes, which no other test needs

    job = read(name)
    assert getattr(models, model).from_dict(job).to_dict() == job  # a field that it does not know is lost


@pytest.fixture
def jobset():
    """The command of a job set, what it mounts, and the environments of its pods."""
    job = read("jobset.yaml")
    (node,) = job["spec"]["replicatedJobs"]
    spec = node["template"]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    environment = {entry["name"]: entry for entry in container["env"]}
    count = int(environment["JAX_NUM_PROCESSES"]["value"])
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", count, count)
    name = job["metadata"]["name"]
    first = f"{name}-{node['name']}-0-0.{name}"  # JobSet's names of pods, and its subdomain
    program, *words = container["command"]
    assert program == "jaxeval"
    (mount,) = container["volumeMounts"]
    return words, mount["mountPath"], pods(count, environment, first)


def test_the_pods_of_a_jobset_are_the_processes_of_one_run(jobset, monkeypatch):
    words, _, environments = jobset
    assert words[words.index("--distributed") + 1] == "auto"
    assert len(environments) == 2
    for index, own in enumerate(environments):
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        found = Processes().convert("auto", None, None)
        assert (found["process_id"], found["num_processes"]) == (index, 2)
        assert found["coordinator_address"] == environments[0]["JAX_COORDINATOR_ADDRESS"]


@pytest.mark.slow
def test_a_jobset_is_one_run(jobset, votes, expected, tmp_path):
    words, mounted, environments = jobset
    shutil.copytree(votes, tmp_path / "votes")
    words = [word.replace(mounted, str(tmp_path)) for word in words]
    command = ["-m", "jaxeval", *words, *QUICK]
    runs = [started(command, **own)[0] for own in environments]
    check_run(runs, tmp_path / "board.csv", expected)
    assert list((tmp_path / "run").iterdir())


@pytest.mark.slow
def test_a_trainjob_is_one_run_that_fetches_each_file_once(votes, expected, tmp_path):
    job = read("trainjob.yaml")
    trainer, name = job["spec"]["trainer"], job["metadata"]["name"]
    # What Kubeflow's runtime for JAX adds to the environment: pkg/runtime/framework/plugins/jax/jax.go of its Trainer.
    first = f"{name}-node-0-0.{name}"
    environment = {"JAX_NUM_PROCESSES": {"value": str(trainer["numNodes"])},
                   "JAX_PROCESS_ID": {"valueFrom": {"fieldRef": {"fieldPath": INDEX}}},
                   "JAX_COORDINATOR_ADDRESS": {"value": f"{first}:29500"},
                   "JAX_COORDINATOR_PORT": {"value": "29500"}}  # fmt: skip
    program, *words = trainer["command"]
    assert program == "jaxeval"
    words = [word.replace("OWNER/NAME/data/*.parquet", "people/votes/data/*.csv") for word in words]
    command = ["-m", "jaxeval", *words, *QUICK, "--out", tmp_path / "board.csv"]
    with served() as hub:
        hub.files = {f"/hub/data/{file.name}": file.read_bytes() for file in votes.iterdir()}
        of_hub = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hub"), "no_proxy": "127.0.0.1"}
        runs = [started(command, **own, **of_hub)[0] for own in pods(trainer["numNodes"], environment, first)]
        check_run(runs, tmp_path / "board.csv", expected)
        fetched = sorted(path for path, _ in hub.fetched if "/resolve/" in path)
    assert fetched == [
        "/datasets/people/votes/resolve/main/data/0.csv",
        "/datasets/people/votes/resolve/main/data/1.csv",
    ]


SRUN = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
while words[0].startswith("--"):
    print(words.pop(0), file=open("options", "a"))
step = {{"SLURM_STEP_NODELIST": "127.0.0.1,node[002-003]", "SLURM_STEP_NUM_NODES": "2", "SLURM_NTASKS": "2",
        "SLURM_LOCALID": "0"}}
tasks = [subprocess.Popen(words, env={{**os.environ, **step, "SLURM_PROCID": str(k)}}) for k in range(2)]
sys.exit(max(task.wait() for task in tasks))
"""


def free_job_id():
    """A number of a job for which the port that JAX makes of it is free."""
    for job in range(os.getpid() % 4096, 4096 + 4096):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", job % 4096 + 61440)) != 0:
                return job
    raise AssertionError("no port is free")


def test_the_slurm_script_is_one_of_bash():
    result = subprocess.run(["bash", "-n", JOBS / "slurm.sh"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert os.access(JOBS / "slurm.sh", os.X_OK)


@pytest.mark.slow
def test_a_slurm_job_is_one_run(votes, expected, tmp_path):
    tool = f'#!/bin/bash\necho "$JAX_LOCAL_DEVICE_IDS" >>devices\nexec {sys.executable} -m jaxeval "$@"\n'
    programs = {"srun": SRUN.format(python=sys.executable), "jaxeval": tool}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    own = {"XLA_FLAGS": flags("--xla_force_host_platform_device_count=1"),
           "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "JAX_PLATFORMS": "cpu", "SLURM_GPUS_ON_NODE": "4",
           "SLURM_JOB_ID": str(free_job_id()), "SLURM_CPUS_PER_TASK": "16"}  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_XDIST_WORKER"} | own
    command = ["bash", JOBS / "slurm.sh", *votes.iterdir(), *QUICK, "--out", "board.csv"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("600 battles between 6 models") == 1
    board = pd.read_csv(tmp_path / "board.csv")
    assert list(board["model"]) == list(expected["model"])
    assert (tmp_path / "options").read_text().split() == ["--cpus-per-task=16", "--kill-on-bad-exit=1"]
    assert (tmp_path / "devices").read_text().split() == ["0,1,2,3"] * 2
