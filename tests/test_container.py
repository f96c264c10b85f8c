"""The files by which the service runs in containers: checked without Docker."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sqlalchemy.engine import make_url

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def test_the_dockerfile_has_no_fault_that_its_linter_knows():
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip('hadolint is not installed: pip install "eqsep[dev]"')
    done = subprocess.run([linter, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_image_copies_is_there():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall("COPY (.*)", text) for name in line.split()[:-1]]
    assert len(copied) >= 5
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not set(copied) & set(ignored)


def test_the_service_waits_for_its_database_and_opens_to_this_machine_alone():
    service, database = COMPOSE["services"]["eqsep"], COMPOSE["services"]["database"]
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert "pg_isready" in database["healthcheck"]["test"][1]
    assert [port.split(":")[0] for port in service["ports"]] == ["127.0.0.1"]
    url = make_url(re.sub(r"\$\{[^}]*\}", "secret", service["command"][-1]))
    assert (url.host, url.username) == ("database", database["environment"]["POSTGRES_USER"])
    assert url.database == database["environment"]["POSTGRES_DB"]
    used = {volume.split(":")[0] for one in (service, database) for volume in one["volumes"]}
    assert used == set(COMPOSE["volumes"])


def test_no_password_is_written_down():
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert len(re.findall(r"\$\{EQSEP_DB_PASSWORD:\?", text)) == 2
