"""How probable the name of an alarm is, when it was scored and by the live version."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for name in ("kind_probability", "now_kind_probability"):
        op.add_column("rows", sa.Column(name, sa.Float()))
