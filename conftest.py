"""What holds for all tests, those in docstrings too."""

import os

# Before anything is imported: SciPy looks at this only once.
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn's array API checks are skipped


def pytest_configure(config):
    """Which warnings are no errors.

    Named in pyproject.toml, they would import the package before its coverage is measured.
    """
    # Made-up tables have dates, and columns that tell all.
    config.addinivalue_line("filterwarnings", "ignore::eqsep.checks.DataWarning")
    # mlflow, where it is installed, would rather have types, in classes of its own too.
    config.addinivalue_line("filterwarnings", r"ignore:.*\btype hint:UserWarning")
