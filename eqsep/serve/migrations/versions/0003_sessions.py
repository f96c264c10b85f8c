"""Sessions of browsers, apart from tokens, which may expire."""

import sqlalchemy as sa
from alembic import op

from eqsep.serve.schema import ID, has, may_have

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("people", sa.Column("expires", sa.Float()))
    op.create_table(
        "sessions",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        *has(name=sa.String(100)),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        *may_have(former=sa.String(64)),
        *has(secret=sa.String(64), at=sa.Float, renewed=sa.Float, expires=sa.Float),
    )
    op.create_index("ix_sessions_name", "sessions", ["name"])
