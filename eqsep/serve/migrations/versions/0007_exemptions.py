"""Alarms that are expected for a while, and which of them are kept out of the inbox."""

import sqlalchemy as sa
from alembic import op

from eqsep.serve.schema import ID, has, may_have

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("rows", sa.Column("exemption", ID))
    op.create_index("ix_rows_exemption", "rows", ["exemption"])
    op.create_table(
        "exemptions",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        *has(model=sa.String(100)),
        *may_have(entity=sa.String(200), column=sa.Text, low=sa.Float, high=sa.Float),
        *has(expires=sa.Float, note=sa.Text, by=sa.String(100), at=sa.Float),
        *may_have(revoked_at=sa.Float, revoked_by=sa.String(100)),
    )
    op.create_index("exemptions_of_model", "exemptions", ["model", "expires"])
