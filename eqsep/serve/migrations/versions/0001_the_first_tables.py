"""The first tables. The store makes those of today at once where there are none."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing: no database is older than this."""
