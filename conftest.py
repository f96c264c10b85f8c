"""What holds for all tests, those in docstrings too."""

import gc
import os
import signal
from contextlib import suppress
from importlib import import_module

import pytest

# The longest first, and those that mostly wait: no process is left with one when others have ended.
# Of the first three, one begins with the fit of a detector: loops are compiled once, not by each.
LONGEST = (
    "test_readme.py",
    "test_layers.py",
    "test_estimators.py",
    "test_commands.py",
    "test_console_browser.py",
    "test_distributed.py",
    "test_web_connections.py",
    "test_serving_command.py",
    "test_loops.py",
    "test_paper_studies.py",
    "test_paper_runner.py",
    "test_report_commands.py",
    "test_serve.py",
    "test_gallery.py",
    "test_oddbench.py",
    "test_golden.py",
    "test_calibration.py",
    "test_report.py",
    "test_web_api.py",
    "test_web_guards.py",
    "test_serving_kill.py",
    "test_console_pages.py",
    "test_persistence.py",
    "test_sources.py",
    "test_notices.py",
    "test_monitor.py",
    "test_networks.py",
    "test_shipped_settings.py",
    "test_commands_in_time.py",
)

# A command in the background of a script ignores Ctrl-C, and so would all that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Before anything is imported: SciPy looks at this only once.
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn's array API checks are skipped


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect garbage rarely: by default it takes a fifth of the time of collecting tests, whose
    objects all stay to the end, and a tenth of that of running them."""
    gc.disable()
    import_in_turn(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        gc.enable()


def import_in_turn(config):
    """Let each process compile other test files first, and read those that others have compiled."""
    worker = getattr(config, "workerinput", None)
    if worker and "tests" in config.args:
        paths = sorted((config.rootpath / "tests").glob("test_*.py"))
        names = [path.stem for path in paths if not pytest_ignore_collect(path, config)]
        first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for name in names[first:] + names[:first]:
            with suppress(Exception, pytest.skip.Exception):  # it comes again when it is collected
                import_module(name)


# What `make test` leaves to `make test-all`: the studies of the paper, examples, benchmarks and
# tools, large real tables, and the code blocks of all pages but these.
EXTRA = (
    "test_bench_adbench.py",
    "test_bench_cost.py",
    "test_bench_tasks.py",
    "test_bench_warnings_audit.py",
    "test_compare_pages.py",
    "test_detector_real.py",
    "test_gallery.py",
    "test_oddbench.py",
    "test_paper_archive.py",
    "test_paper_claim_studies.py",
    "test_paper_claims.py",
    "test_paper_command.py",
    "test_paper_headlines.py",
    "test_paper_runner.py",
    "test_paper_settings.py",
    "test_paper_studies.py",
    "test_paper_tables.py",
    "test_paper_text.py",
    "test_paper_verdicts.py",
    "test_replay_verdicts.py",
    "test_search_witness.py",
)
MAIN_PAGES = ("README.md", "commands.md", "quickstart.md")
# What depends on the database; all else that the service keeps is tested on SQLite, and on
# PostgreSQL by `make test-all`.
ON_POSTGRESQL = (
    "test_a_filter_is_obeyed",
    "test_alarms_are_found_by_the_value_of_a_column",
    "test_migrations_end_at_the_tables_of_the_schema",
    "test_two_writers_lose_nothing",
)
RUN_BLOCKS = ("test_the_blocks_run_in_order", "test_commands_within_a_line_run_too")


def is_extra(item):
    """Whether a test is left to `make test-all`."""
    if item.path.name == "test_readme.py" and getattr(item, "originalname", "") in RUN_BLOCKS:
        return item.callspec.params["page"].name not in MAIN_PAGES
    if hasattr(item, "callspec") and item.callspec.params.get("url") == "postgresql":
        return item.originalname not in ON_POSTGRESQL
    return item.path.name in EXTRA


def pytest_ignore_collect(collection_path, config):
    """Files of which no test is wanted are not even imported."""
    return True if config.option.markexpr == "not extra" and collection_path.name in EXTRA else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Files without an example are not searched for any, nor imported for that."""
    found = yield
    if file_path.suffix == ".py" and b">>>" not in file_path.read_bytes():
        return [each for each in found if type(each) is pytest.Module]  # else of doctests
    return found


def pytest_collection_modifyitems(items):
    """Mark what is extra, and put the files of LONGEST before all others."""
    for item in items:
        if is_extra(item):
            item.add_marker("extra")
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
