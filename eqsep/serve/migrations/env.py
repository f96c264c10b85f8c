"""Where Alembic begins: the connection is that of the store, which has opened a transaction."""

from alembic import context

from eqsep.serve.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite changes a table by making a new one
)
context.run_migrations()
