"""The options of `eqsep mcp`: the alarms of a service, for assistants."""

from eqsep.cli.serve import HERE, Data, Database
from eqsep.commands.console import errors_told


def run_mcp(data: Data = HERE, database: Database = None) -> None:
    """Let an assistant look at alarms and propose verdicts, by the Model Context Protocol."""
    with errors_told():
        from eqsep.commands import assisting

        assisting.serve_assistants(data, database)
