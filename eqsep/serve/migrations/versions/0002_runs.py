"""The last rows of each run of a model with windows."""

import sqlalchemy as sa
from alembic import op

from eqsep.serve.schema import has

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "runs",
        *has(model=sa.String(100), run=sa.String(16), name=sa.String(200), time=sa.Float),
        *has(time_shown=sa.Text, last=sa.LargeBinary, at=sa.Float),
        sa.PrimaryKeyConstraint("model", "run"),
    )
