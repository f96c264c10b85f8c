"""When a monitor found that rows have changed."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("monitors", sa.Column("drift_at", sa.Float()))
