"""The tables of the store. Their first form and every change since are in `migrations`."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()
_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up whole numbers alone

models = Table(
    "models",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("live", _ID, nullable=False),  # the version that scores and raises alarms
    Column("shadow", _ID),  # one that also scores, and raises no alarms
    Column("settings", JSON, nullable=False),
)

# The log: each version is its operation done to its parent, so the model is the sum of its log.
versions = Table(
    "versions",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("model", String(100), nullable=False),
    Column("parent", _ID),
    Column("operation", String(20), nullable=False),
    Column("lesson", JSON),  # rows and labels; gone once they are purged
    Column("source", _ID),  # the version that is gone back to, or merged
    Column("by", String(100), nullable=False),
    Column("at", Float, nullable=False),
    Column("note", Text, nullable=False),
    Column("n_rows", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("depth", Integer, nullable=False),  # operations since the last snapshot
    Index("versions_of_model", "model", "id"),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("version", _ID, ForeignKey("versions.id"), primary_key=True),
    Column("content", LargeBinary, nullable=False),  # a model file, without pickle
)

# Rows that raised an alarm, and a random share of those that passed.
rows = Table(
    "rows",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("model", String(100), nullable=False),
    Column("version", _ID, nullable=False),
    Column("at", Float, nullable=False),
    Column("row", JSON, nullable=False),
    Column("entity", String(200)),
    Column("score", Float, nullable=False),
    Column("p_value", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("alarm", Boolean, nullable=False),
    Column("drawn", Boolean, nullable=False),  # at random, to be judged: it may calibrate
    Column("shadow_score", Float),
    Column("reasons", JSON),  # null until somebody asks
    Column("state", String(20), nullable=False),  # open, unsure, judged
    Column("assignee", String(100)),
    Column("note", Text, nullable=False),
    Column("proposal", JSON),  # a verdict that a person may confirm
    # What the live version says of it, so that the inbox follows what was learnt.
    Column("now_version", _ID, nullable=False),
    Column("now_score", Float, nullable=False),
    Column("now_p_value", Float, nullable=False),
    Column("now_kind", Text, nullable=False),
    Column("now_alarm", Boolean, nullable=False),
    Index("rows_of_inbox", "model", "state", "now_alarm", "at"),
    Index("rows_of_entity", "model", "entity", "at"),
    Index("rows_to_refresh", "model", "now_version"),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("row", _ID, nullable=False, index=True),
    Column("model", String(100), nullable=False),
    Column("verdict", String(20), nullable=False),
    Column("kind", Text),
    Column("note", Text, nullable=False),
    Column("by", String(100), nullable=False),
    Column("at", Float, nullable=False),
    Column("version", _ID),  # that has learnt it; none where it teaches nothing
    Column("undone_at", Float),
    Column("undone_by", String(100)),
    Column("undone_version", _ID),  # that has forgotten it, where one has
)

# The last rows of each run of a model with windows, from which those of the next row go on.
runs = Table(
    "runs",
    metadata,
    Column("model", String(100), primary_key=True),
    Column("run", String(16), primary_key=True),  # a hash of its name
    Column("name", String(200), nullable=False),
    Column("time", Float, nullable=False),  # of the last row
    Column("time_shown", Text, nullable=False),  # as it came
    Column("last", LargeBinary, nullable=False),  # floats: rows, by columns with windows
    Column("at", Float, nullable=False),  # when the last row came
)

counts = Table(
    "counts",
    metadata,
    Column("model", String(100), primary_key=True),
    Column("minute", _ID, primary_key=True, autoincrement=False),
    Column("version", _ID, primary_key=True, autoincrement=False),
    Column("worker", String(40), primary_key=True),
    Column("rows", Integer, nullable=False),
    Column("alarms", Integer, nullable=False),
    Column("shadow_alarms", Integer, nullable=False),
)

monitors = Table(
    "monitors",
    metadata,
    Column("model", String(100), primary_key=True),
    Column("worker", String(40), primary_key=True),
    Column("at", Float, nullable=False),
    Column("state", LargeBinary, nullable=False),
)

people = Table(
    "people",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("role", String(10), nullable=False),
    Column("token", String(64), nullable=False, unique=True),  # its hash
    Column("at", Float, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("who", String(100), nullable=False),
    Column("action", String(40), nullable=False),
    Column("detail", JSON, nullable=False),
)
