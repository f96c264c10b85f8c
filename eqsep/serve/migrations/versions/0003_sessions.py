"""Sessions of browsers, apart from tokens, which may expire."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("people", sa.Column("expires", sa.Float()))
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "sessions",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("former", sa.String(64)),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("renewed", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
    )
    op.create_index("ix_sessions_name", "sessions", ["name"])
