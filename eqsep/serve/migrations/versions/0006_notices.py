"""Whom to tell of incidents, new kinds and drift, and what was sent."""

import sqlalchemy as sa
from alembic import op

from eqsep.serve.schema import ID, has

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("model", sa.String(100), primary_key=True),
        *has(settings=sa.JSON, secret=sa.String(64), known=sa.JSON, at=sa.Float),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        *has(model=sa.String(100), channel=sa.String(10), event=sa.String(20)),
        *has(subject=sa.String(200), content=sa.JSON, at=sa.Float, state=sa.String(10)),
        *has(due=sa.Float, attempts=sa.Integer, error=sa.Text),
    )
    of_subject = ["model", "channel", "event", "subject"]
    op.create_index("deliveries_of_subject", "deliveries", of_subject, unique=True)
    op.create_index("deliveries_due", "deliveries", ["state", "due"])
