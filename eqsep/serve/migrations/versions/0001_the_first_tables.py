"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _column(name: str, kind: Any, **more: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, **{"nullable": False} | more)


def _number() -> sa.Column[Any]:
    return _column("id", _ID, autoincrement=True)


def upgrade() -> None:
    op.create_table(
        "audit",
        _number(),
        _column("at", sa.Float()),
        _column("who", sa.String(100)),
        _column("action", sa.String(40)),
        _column("detail", sa.JSON()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "counts",
        _column("model", sa.String(100)),
        _column("minute", _ID, autoincrement=False),
        _column("version", _ID, autoincrement=False),
        _column("worker", sa.String(40)),
        _column("rows", sa.Integer()),
        _column("alarms", sa.Integer()),
        _column("shadow_alarms", sa.Integer()),
        sa.PrimaryKeyConstraint("model", "minute", "version", "worker"),
    )
    op.create_table(
        "models",
        _column("name", sa.String(100)),
        _column("live", _ID),
        _column("shadow", _ID, nullable=True),
        _column("settings", sa.JSON()),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "monitors",
        _column("model", sa.String(100)),
        _column("worker", sa.String(40)),
        _column("at", sa.Float()),
        _column("state", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("model", "worker"),
    )
    op.create_table(
        "people",
        _column("name", sa.String(100)),
        _column("role", sa.String(10)),
        _column("token", sa.String(64)),
        _column("at", sa.Float()),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("token"),
    )
    op.create_table(
        "rows",
        _number(),
        _column("model", sa.String(100)),
        _column("version", _ID),
        _column("at", sa.Float()),
        _column("row", sa.JSON()),
        _column("entity", sa.String(200), nullable=True),
        _column("score", sa.Float()),
        _column("p_value", sa.Float()),
        _column("kind", sa.Text()),
        _column("alarm", sa.Boolean()),
        _column("drawn", sa.Boolean()),
        _column("shadow_score", sa.Float(), nullable=True),
        _column("reasons", sa.JSON(), nullable=True),
        _column("state", sa.String(20)),
        _column("assignee", sa.String(100), nullable=True),
        _column("note", sa.Text()),
        _column("proposal", sa.JSON(), nullable=True),
        _column("now_version", _ID),
        _column("now_score", sa.Float()),
        _column("now_p_value", sa.Float()),
        _column("now_kind", sa.Text()),
        _column("now_alarm", sa.Boolean()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("rows_of_entity", "rows", ["model", "entity", "at"])
    op.create_index("rows_of_inbox", "rows", ["model", "state", "now_alarm", "at"])
    op.create_index("rows_to_refresh", "rows", ["model", "now_version"])
    op.create_table(
        "verdicts",
        _number(),
        _column("row", _ID),
        _column("model", sa.String(100)),
        _column("verdict", sa.String(20)),
        _column("kind", sa.Text(), nullable=True),
        _column("note", sa.Text()),
        _column("by", sa.String(100)),
        _column("at", sa.Float()),
        _column("version", _ID, nullable=True),
        _column("undone_at", sa.Float(), nullable=True),
        _column("undone_by", sa.String(100), nullable=True),
        _column("undone_version", _ID, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_verdicts_row", "verdicts", ["row"])
    op.create_table(
        "versions",
        _number(),
        _column("model", sa.String(100)),
        _column("parent", _ID, nullable=True),
        _column("operation", sa.String(20)),
        _column("lesson", sa.JSON(), nullable=True),
        _column("source", _ID, nullable=True),
        _column("by", sa.String(100)),
        _column("at", sa.Float()),
        _column("note", sa.Text()),
        _column("n_rows", sa.Integer()),
        _column("digest", sa.String(64)),
        _column("depth", sa.Integer()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("versions_of_model", "versions", ["model", "id"])
    op.create_table(
        "snapshots",
        _column("version", _ID),
        _column("content", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["version"], ["versions.id"]),
        sa.PrimaryKeyConstraint("version"),
    )
