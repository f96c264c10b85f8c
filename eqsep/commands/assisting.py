"""`eqsep mcp`: a service's alarms for assistants."""

from pathlib import Path
from typing import Annotated

import typer

from eqsep.commands.console import errors_told

DataFolder = Annotated[
    Path, typer.Option("--data", metavar="FOLDER", help="Where the service keeps its database.")
]
Database = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Another database: postgresql+psycopg://USER@HOST/NAME."),
]


def run_mcp(data: DataFolder = Path("eqsep-serve"), database: Database = None) -> None:
    """Let an assistant look at alarms and propose verdicts, by the Model Context Protocol."""
    with errors_told():
        from eqsep.serve.mcp import server
        from eqsep.serve.workspace import Workspace

        work = Workspace.in_folder(data) if database is None else Workspace(database)
        try:
            server(work).run()
        finally:
            work.close()
