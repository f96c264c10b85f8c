"""The tables of the store. Their first form and every change since are in `migrations`."""

import sqlalchemy as sa

metadata = sa.MetaData()
_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite counts up whole numbers alone

models = sa.Table(
    "models",
    metadata,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("live", _ID, nullable=False),  # the version that scores and raises alarms
    sa.Column("shadow", _ID),  # one that also scores, and raises no alarms
    sa.Column("settings", sa.JSON, nullable=False),
)

# The log: each version is its operation done to its parent, so the model is the sum of its log.
versions = sa.Table(
    "versions",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("model", sa.String(100), nullable=False),
    sa.Column("parent", _ID),
    sa.Column("operation", sa.String(20), nullable=False),
    sa.Column("lesson", sa.JSON),  # rows and labels; gone once they are purged
    sa.Column("source", _ID),  # the version that was reverted to, or merged
    sa.Column("by", sa.String(100), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("n_rows", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("depth", sa.Integer, nullable=False),  # operations since the last snapshot
    sa.Index("versions_of_model", "model", "id"),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("version", _ID, sa.ForeignKey("versions.id"), primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),  # a model file, without pickle
)

# Rows that raised an alarm, and a random share of those that passed.
rows = sa.Table(
    "rows",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("model", sa.String(100), nullable=False),
    sa.Column("version", _ID, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("row", sa.JSON, nullable=False),
    sa.Column("entity", sa.String(200)),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("p_value", sa.Float, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("kind_probability", sa.Float),  # null where it is not known
    sa.Column("alarm", sa.Boolean, nullable=False),
    sa.Column("drawn", sa.Boolean, nullable=False),  # at random, to be judged: it may calibrate
    sa.Column("shadow_score", sa.Float),
    sa.Column("reasons", sa.JSON),  # null until somebody asks
    sa.Column("state", sa.String(20), nullable=False),  # open, unsure, judged, exempt
    sa.Column("assignee", sa.String(100)),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("proposal", sa.JSON),  # a verdict that a person may confirm
    sa.Column("exemption", _ID, index=True),  # that keeps it out of the inbox
    # What the live version says of it, so that the inbox follows what was learnt.
    sa.Column("now_version", _ID, nullable=False),
    sa.Column("now_score", sa.Float, nullable=False),
    sa.Column("now_p_value", sa.Float, nullable=False),
    sa.Column("now_kind", sa.Text, nullable=False),
    sa.Column("now_kind_probability", sa.Float),
    sa.Column("now_alarm", sa.Boolean, nullable=False),
    sa.Index("rows_of_inbox", "model", "state", "now_alarm", "at"),
    sa.Index("rows_of_entity", "model", "entity", "at"),
    sa.Index("rows_to_refresh", "model", "now_version"),
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("row", _ID, nullable=False, index=True),
    sa.Column("model", sa.String(100), nullable=False),
    sa.Column("verdict", sa.String(20), nullable=False),
    sa.Column("kind", sa.Text),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("by", sa.String(100), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("version", _ID),  # that has learnt it; none where it teaches nothing
    sa.Column("undone_at", sa.Float),
    sa.Column("undone_by", sa.String(100)),
    sa.Column("undone_version", _ID),  # that has forgotten it, where one has
)

# Alarms that are expected for a while.
exemptions = sa.Table(
    "exemptions",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("model", sa.String(100), nullable=False),
    sa.Column("entity", sa.String(200)),
    sa.Column("column", sa.Text),
    sa.Column("low", sa.Float),
    sa.Column("high", sa.Float),
    sa.Column("expires", sa.Float, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("by", sa.String(100), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("revoked_at", sa.Float),
    sa.Column("revoked_by", sa.String(100)),
    sa.Index("exemptions_of_model", "model", "expires"),
)

# The last rows of each run of a model with windows, from which those of the next row go on.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("model", sa.String(100), primary_key=True),
    sa.Column("run", sa.String(16), primary_key=True),  # a hash of its name
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("time", sa.Float, nullable=False),  # of the last row
    sa.Column("time_shown", sa.Text, nullable=False),  # as it came
    sa.Column("last", sa.LargeBinary, nullable=False),  # floats: rows, by columns with windows
    sa.Column("at", sa.Float, nullable=False),  # when the last row came
)

counts = sa.Table(
    "counts",
    metadata,
    sa.Column("model", sa.String(100), primary_key=True),
    sa.Column("minute", _ID, primary_key=True, autoincrement=False),
    sa.Column("version", _ID, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.String(40), primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("alarms", sa.Integer, nullable=False),
    sa.Column("shadow_alarms", sa.Integer, nullable=False),
)

monitors = sa.Table(
    "monitors",
    metadata,
    sa.Column("model", sa.String(100), primary_key=True),
    sa.Column("worker", sa.String(40), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=False),
    sa.Column("drift_at", sa.Float),  # when rows were found to have changed
)

# Whom to tell what happens with a model.
subscriptions = sa.Table(
    "subscriptions",
    metadata,
    sa.Column("model", sa.String(100), primary_key=True),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("secret", sa.String(64), nullable=False),  # that signs what is sent
    sa.Column("known", sa.JSON, nullable=False),  # kinds that are not new
    sa.Column("at", sa.Float, nullable=False),  # what came before is not new
)

# What is to be sent, and what was: the log and the queue in one.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("model", sa.String(100), nullable=False),
    sa.Column("channel", sa.String(10), nullable=False),  # webhook, email
    sa.Column("event", sa.String(20), nullable=False),
    sa.Column("subject", sa.String(200), nullable=False),  # what is sent once
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),  # waiting, sent, failed
    sa.Column("due", sa.Float, nullable=False),  # when it is tried next
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("error", sa.Text, nullable=False),  # of the last attempt
    sa.Index("deliveries_of_subject", "model", "channel", "event", "subject", unique=True),
    sa.Index("deliveries_due", "state", "due"),
)

people = sa.Table(
    "people",
    metadata,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("role", sa.String(10), nullable=False),
    sa.Column("token", sa.String(64), nullable=False, unique=True),  # its hash
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("expires", sa.Float),  # null: never
)

# Browsers that people have signed in with. A token that is void ends its sessions.
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(100), nullable=False, index=True),
    sa.Column("key", sa.String(64), nullable=False, unique=True),  # the hash of its cookie
    sa.Column("former", sa.String(64)),  # of the cookie before, for requests under way
    sa.Column("secret", sa.String(64), nullable=False),  # of its forms
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("renewed", sa.Float, nullable=False),  # when it got its cookie
    sa.Column("expires", sa.Float, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("who", sa.String(100), nullable=False),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
)
