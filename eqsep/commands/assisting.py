"""`eqsep mcp`: a service's alarms for assistants."""

from eqsep.commands.console import errors_told
from eqsep.commands.serving import HERE, Data, Database


def run_mcp(data: Data = HERE, database: Database = None) -> None:
    """Let an assistant look at alarms and propose verdicts, by the Model Context Protocol."""
    with errors_told():
        from eqsep.serve.mcp import server
        from eqsep.serve.workspace import Workspace

        work = Workspace.in_folder(data) if database is None else Workspace(database)
        try:
            server(work).run()
        finally:
            work.close()
