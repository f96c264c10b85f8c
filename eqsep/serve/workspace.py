"""The workspace: all that a service stores, and all that can be done with it."""

from contextlib import suppress
from pathlib import Path
from typing import Self

from eqsep.serve.alarms import Alarms, Queue
from eqsep.serve.exemptions import Exemptions
from eqsep.serve.incidents import Folding
from eqsep.serve.intake import Intake
from eqsep.serve.ledger import Ledger
from eqsep.serve.notices import Notices
from eqsep.serve.people import People
from eqsep.serve.purging import Purging
from eqsep.serve.store import Store, Unavailable
from eqsep.serve.verdicts import VerdictBook
from eqsep.serve.watching import Watching

DATABASE = "eqsep.db"  # the file in a service's folder


def make_folder(folder: Path) -> None:
    """Make a service's folder, if there is none, that only its owner can look into."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class Workspace:
    """A database and everything that works on it, for the API, the console and the MCP server.

    Parameters
    ----------
    url : str
        The URL of the database for SQLAlchemy: "sqlite:///folder/eqsep.db",
        "postgresql+psycopg://host/name".
    keep_quiet : float, default=0.05
        The share of rows without an alarm that is stored, chosen at random.
    workers : int, default=1
        How many processes serve this database.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> rows = [{"x": float(x)} for x in np.random.default_rng(0).normal(size=600)]
    >>> detector = Detector(bandwidth=1.0, n_landmarks=30, random_state=0).fit(rows)
    >>> work = Workspace("sqlite://")
    >>> version = work.ledger.add("pump", detector, by="ada")
    >>> alarms = work.intake.take("pump", [{"x": x} for x in (5.0, 5.3, 5.5)])
    >>> given = work.verdicts.give([a.id for a in alarms], "true", kind="leak", by="ada")
    >>> work.intake.score("pump", [{"x": 5.4}])[0].kind
    'leak'
    >>> undone = work.verdicts.undo([verdict.id for verdict in given.verdicts], by="ada")
    >>> undone.digest == version.digest
    True
    """

    def __init__(self, url: str, *, keep_quiet: float = 0.05, workers: int = 1) -> None:
        self.store = Store(url)
        self.ledger = Ledger(self.store)  # models and their versions
        self.watching = Watching(self.store, self.ledger, workers=workers)
        self.alarms = Alarms(self.store, self.ledger)
        self.intake = Intake(
            self.store, self.ledger, self.watching, self.alarms, keep_quiet=keep_quiet
        )
        self.folding = Folding(self.store, self.ledger, self.alarms)  # alarms to incidents
        self.verdicts = VerdictBook(self.store, self.ledger, self.alarms)
        self.exemptions = Exemptions(self.store, self.ledger, self.alarms)
        self.queue = Queue(self.store, self.alarms)  # rows whose labels would help most
        self.notices = Notices(self.store, self.ledger, self.folding, self.watching)
        self.people = People(self.store)
        self.purging = Purging(self.store, self.ledger, self.alarms)

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """The workspace in a folder, which is created if it does not exist."""
        make_folder(folder)
        return cls(f"sqlite:///{folder.resolve() / DATABASE}")

    def close(self) -> None:
        """Save the monitors if the database is available, and close it."""
        with suppress(Unavailable):  # they were saved a while ago
            self.watching.save()
        self.store.close()
