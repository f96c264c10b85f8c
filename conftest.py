"""What holds for all tests, those in docstrings too."""

import gc
import os

import pytest

# The longest first: of two processes none is left with one of these when the other has ended.
LONGEST = (
    "test_readme.py",
    "test_distributed.py",
    "test_console_browser.py",
    "test_commands.py",
    "test_estimators.py",
    "test_paper_studies.py",
    "test_paper_runner.py",
    "test_report_commands.py",
    "test_serve.py",
    "test_gallery.py",
    "test_serving_command.py",
    "test_report.py",
    "test_web_api.py",
    "test_commands_in_time.py",
)

# Before anything is imported: SciPy looks at this only once.
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn's array API checks are skipped


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays to the end: to look for garbage in it is a fifth of the
    time that collecting takes, and again a part of that of every test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """The files of LONGEST before all others, which stay in their order."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(LONGEST)))


def pytest_configure(config):
    """Which warnings are no errors.

    Named in pyproject.toml, they would import the package before its coverage is measured.
    """
    # Made-up tables have dates, and columns that tell all.
    config.addinivalue_line("filterwarnings", "ignore::eqsep.checks.DataWarning")
    # mlflow, where it is installed, would rather have types, in classes of its own too.
    config.addinivalue_line("filterwarnings", r"ignore:.*\btype hint:UserWarning")
