"""The workflows of .github against the Makefile and pyproject.toml."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# In YAML 1.1, the key `on` is the boolean true.
WORKFLOWS = {
    path.stem: {str(key).replace("True", "on"): value for key, value in loaded.items()}
    for path in FILES
    for loaded in [yaml.safe_load(path.read_text(encoding="utf-8"))]
}
TESTS, RELEASE = (WORKFLOWS[name]["jobs"] for name in ("tests", "release"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def made(workflow):
    """The targets that the jobs of a workflow make."""
    steps = (step for job in workflow["jobs"].values() for step in job.get("steps", ()))
    calls = (re.findall("^make (.+)$", step.get("run", ""), re.MULTILINE) for step in steps)
    return {target for lines in calls for line in lines for target in line.split()}


def recipe(target):
    """The first command of a target in the Makefile, with its variables replaced."""
    line = re.search(rf"^{re.escape(target)}:.*\n\t(.*)", MAKEFILE, re.MULTILINE)[1]
    line = line.replace("$(or $(FILE),", "").removesuffix(")")
    values = dict(re.findall(r"^(\w+) :?= (.*)", MAKEFILE, re.MULTILINE))
    return shlex.split(re.sub(r"\$\((\w+)\)", lambda name: values[name[1]], line))


def test_the_python_versions_are_those_of_the_classifiers():
    prefix = "Programming Language :: Python :: 3."
    declared = [line.split()[-1] for line in PROJECT["classifiers"] if line.startswith(prefix)]
    assert TESTS["test"]["strategy"]["matrix"]["python"] == declared
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_three_systems_are_tested():
    systems = TESTS["test"]["strategy"]["matrix"]["os"]
    assert [name.split("-")[0] for name in systems] == ["ubuntu", "macos", "windows"]
    assert TESTS["test"]["defaults"]["run"]["shell"] == "bash"


def test_the_workflow_runs_what_make_test_runs():
    assert "test: lint\n\t$(MAKE) --no-print-directory --jobs=2 types check\n" in MAKEFILE
    assert made(WORKFLOWS["tests"]) == {"lint", "types", "test-oldest"}
    threads, program, *options = recipe("check")
    test = TESTS["test"]["steps"][-1]
    assert shlex.split(test["run"]) == [Path(program).name, *options]
    assert threads == f"OMP_NUM_THREADS={test['env']['OMP_NUM_THREADS']}"


def test_the_workflow_installs_what_make_installs():
    [step] = (step for step in TESTS["test"]["steps"] if step.get("name") == "Install")
    constraint, *_, extras = recipe(".venv/.dev")
    assert shlex.split(step["run"])[-1] == extras
    assert constraint == f"PIP_CONSTRAINT={step['env']['PIP_CONSTRAINT']}"


def test_the_pages_are_made():
    assert made(WORKFLOWS["docs"]) == {"docs"}


def test_targets_that_are_made_exist():
    targets = set().union(*map(made, WORKFLOWS.values()))
    assert targets <= set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


def test_torch_comes_without_cuda():
    for name in ("tests", "docs"):
        assert WORKFLOWS[name]["env"]["PIP_EXTRA_INDEX_URL"].endswith("/whl/cpu")


def test_a_release_waits_for_the_tests():
    assert RELEASE["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert RELEASE["docs"]["uses"] == "./.github/workflows/docs.yml"
    assert "workflow_call" in WORKFLOWS["tests"]["on"]
    assert "workflow_call" in WORKFLOWS["docs"]["on"]
    assert set(RELEASE["pypi"]["needs"]) == {"tests", "docs", "build"}
    assert RELEASE["github"]["needs"] == "pypi"
    assert WORKFLOWS["release"]["on"] == {"push": {"tags": ["v*"]}}


def test_only_the_jobs_that_publish_may_write():
    allowed = {
        (name, job): steps["permissions"]
        for name, workflow in WORKFLOWS.items()
        for job, steps in workflow["jobs"].items()
        if "permissions" in steps
    }
    assert allowed == {
        ("release", "pypi"): {"id-token": "write"},
        ("release", "github"): {"contents": "write"},
    }
    assert RELEASE["pypi"]["environment"]["name"] == "pypi"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_workflow_reads_only_and_replaces_its_earlier_run(path):
    workflow = WORKFLOWS[path.stem]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] == (path.stem != "release")
    # A called workflow in the group of its caller would wait for it for ever.
    assert workflow["concurrency"]["group"].startswith(f"{path.stem}-")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_major_version(path):
    used = re.findall(r"uses: ([\w-]+/.+?)(?: +#.*)?$", path.read_text(encoding="utf-8"), re.M)
    assert used
    assert [name for name in used if not re.search(r"@(release/)?v\d+$", name)] == []


def test_the_badges_are_those_of_the_workflows():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"actions/workflows/(\w+)\.yml", text))
    assert named == {"tests", "docs"}
    assert named <= set(WORKFLOWS)
