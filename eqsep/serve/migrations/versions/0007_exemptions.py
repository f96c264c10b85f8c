"""Alarms that are expected for a while, and which of them are kept out of the inbox."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.add_column("rows", sa.Column("exemption", number))
    op.create_index("ix_rows_exemption", "rows", ["exemption"])
    op.create_table(
        "exemptions",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("entity", sa.String(200)),
        sa.Column("column", sa.Text()),
        sa.Column("low", sa.Float()),
        sa.Column("high", sa.Float()),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("by", sa.String(100), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("revoked_at", sa.Float()),
        sa.Column("revoked_by", sa.String(100)),
    )
    op.create_index("exemptions_of_model", "exemptions", ["model", "expires"])
