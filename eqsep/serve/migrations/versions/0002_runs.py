"""The last rows of each run of a model with windows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("run", sa.String(16), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("time_shown", sa.Text(), nullable=False),
        sa.Column("last", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("model", "run"),
    )
