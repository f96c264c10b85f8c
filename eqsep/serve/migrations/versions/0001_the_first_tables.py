"""The tables of the first release, which the store makes at once where there are none."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing: no database is older than this."""
