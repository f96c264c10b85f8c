"""`eqsep mcp`: a service's alarms for assistants."""

from contextlib import closing
from pathlib import Path

from eqsep.serve.mcp import server
from eqsep.serve.workspace import Workspace


def serve_assistants(data: Path, database: str | None) -> None:
    """Answer an assistant on standard input and output until it hangs up."""
    with closing(Workspace.in_folder(data) if database is None else Workspace(database)) as work:
        server(work).run()
