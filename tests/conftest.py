"""What several test files share: real data, where there is some, and files of a few rows."""

import os
import secrets
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fewer import (
    few_draws,
    few_trees,
    plain_pictures,
    templates_compiled_once,
    unwritten_pictures,
)
from hypothesis import settings

settings.register_profile("eqsep", deadline=None, max_examples=40)  # no test asserts a time
settings.load_profile("eqsep")
REAL = Path(os.environ.get("EQSEP_DATA", Path(__file__).parents[2] / "shared" / "data"))

# Files of pictures: what is in them has its place.
LAID_OUT = {"test_displays.py", "test_plots.py", "test_readme.py", "test_report.py"}
# Files that read the text of pages: their pictures are those of test_report.py.
READ = {
    "test_assessing.py",
    "test_commands.py",
    "test_commands_bad_input.py",
    "test_commands_in_time.py",
    "test_commands_promises.py",
    "test_delay.py",
    "test_demo_payments.py",
    "test_evaluation_groups.py",
    "test_names.py",
    "test_project.py",
    "test_report_advice.py",
    "test_report_commands.py",
    "test_report_outlook.py",
}
# Files in which the settings as shipped are the point.
SHIPPED = {"test_golden.py", "test_peers.py", "test_readme.py", "test_shipped_settings.py"}


@pytest.fixture(autouse=True, scope="module")
def fewer(request):
    """Fewer draws in all files, and in most fewer trees and plain pictures.

    No project file is in use, even if commands of the file before have run in one.
    """
    from eqsep.cli.project import current_project, label_column

    current_project.set(None)
    label_column.set(None)
    name = request.path.name
    with (
        few_draws(),
        nullcontext() if name in SHIPPED else few_trees(),
        nullcontext() if name in LAID_OUT else plain_pictures(),
        unwritten_pictures() if name in READ else nullcontext(),
    ):
        yield


@pytest.fixture(autouse=True, scope="session")
def shared_templates():
    with templates_compiled_once():
        yield


@pytest.fixture(scope="session")
def home_of():
    """A function from a data set's folder to the data home; it skips where there is none."""

    def home(folder):
        if not (REAL / folder).is_dir():
            pytest.skip(f"no {folder} in {REAL}: set EQSEP_DATA to the folder that holds {folder}")
        return REAL

    return home


@pytest.fixture
def write_classes(tmp_path):
    """A function that writes a file with the class in the last column, into the data home."""

    def write(folder, file, *, width, classes):
        """Row i holds i, i + 0.5, i + 1, ... and then its class."""
        (tmp_path / folder).mkdir(exist_ok=True)
        lines = [
            " ".join([*(str(i + j / 2) for j in range(width)), str(code)]) + "  "
            for i, code in enumerate(classes)
        ]
        (tmp_path / folder / file).write_text("\n".join(lines) + "\n")
        return tmp_path

    return write


@pytest.fixture
def small_split():
    """Rows with the kinds of NSL-KDD: attacks of the seen kind lie to one side, others around."""
    from eqsep.datasets import TrainTestSplit

    rng = np.random.default_rng(0)

    def rows(counts):
        kind = np.repeat(list(counts), list(counts.values()))
        centres = {"normal": 0.0, "dos": 4.0, "probe": -4.0, "privilege": 3.0, "access": -2.0}
        centre = np.array([centres[k] for k in kind])[:, None]
        order = rng.permutation(len(kind))
        return (rng.normal(size=(len(kind), 4)) + centre)[order], kind[order]

    X_train, kind_train = rows({"normal": 60, "dos": 40})
    X_test, kind_test = rows({"normal": 30, "dos": 20, "probe": 12, "privilege": 5, "access": 12})
    return TrainTestSplit(
        X_train=X_train,
        kind_train=kind_train,
        X_test=X_test,
        kind_test=kind_test,
        feature_names=tuple("abcd"),
    )


@pytest.fixture(scope="session")
def postgres():
    """The start of a URL of a PostgreSQL server that runs for the tests alone."""
    from databases import HOMES, WHY_NOT, postgres_server

    if not HOMES:
        pytest.skip(WHY_NOT)
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The URL of a new database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'eqsep.db'}"
    from sqlalchemy import create_engine, text

    server, name = request.getfixturevalue("postgres"), f"t{secrets.token_hex(6)}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")
