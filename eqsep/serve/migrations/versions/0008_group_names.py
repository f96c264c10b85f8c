"""What people call a group of alarms that look alike."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("rows", sa.Column("group_name", sa.String(100)))
