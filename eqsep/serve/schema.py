"""The tables of the store. Changes to them since the first release are in `migrations`."""

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite counts up whole numbers alone
_NAME, _TEXT, _HASH, _WORD = sa.String(100), sa.String(200), sa.String(64), sa.String(20)


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *parts)


def _numbered(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return _table(name, sa.Column("id", ID, primary_key=True, autoincrement=True), *parts)


def _key(name: str, kind: Any, **more: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, **more)


def has(**columns: Any) -> list[sa.Column[Any]]:
    """Columns with a value in each row, by name and type."""
    return [sa.Column(name, kind, nullable=False) for name, kind in columns.items()]


def may_have(**columns: Any) -> list[sa.Column[Any]]:
    """Columns that may be null."""
    return [sa.Column(name, kind) for name, kind in columns.items()]


models = _table(
    "models",
    _key("name", _NAME),
    *has(live=ID),  # the version that scores and raises alarms
    *may_have(shadow=ID),  # one that also scores, and raises no alarms
    *has(settings=sa.JSON),
)

# The log: each version is its operation done to its parent, so the model is the sum of its log.
versions = _numbered(
    "versions",
    *has(model=_NAME),
    *may_have(parent=ID),
    *has(operation=_WORD),
    *may_have(lesson=sa.JSON),  # rows and labels; gone once they are purged
    *may_have(source=ID),  # the version that was reverted to, or merged
    *has(by=_NAME, at=sa.Float, note=sa.Text, n_rows=sa.Integer, digest=_HASH),
    *has(depth=sa.Integer),  # operations since the last snapshot
    sa.Index("versions_of_model", "model", "id"),
)

snapshots = _table(
    "snapshots",
    sa.Column("version", ID, sa.ForeignKey("versions.id"), primary_key=True),
    *has(content=sa.LargeBinary),  # a model file, without pickle
)

# Rows that raised an alarm, and a random share of those that passed.
rows = _numbered(
    "rows",
    *has(model=_NAME, version=ID, at=sa.Float, row=sa.JSON),
    *may_have(entity=_TEXT),
    *has(score=sa.Float, p_value=sa.Float, kind=sa.Text),
    *may_have(kind_probability=sa.Float),  # null where it is not known
    *has(alarm=sa.Boolean),
    *has(drawn=sa.Boolean),  # at random, to be judged: it may calibrate
    *may_have(shadow_score=sa.Float),
    *may_have(reasons=sa.JSON),  # null until somebody asks
    *has(state=_WORD),  # open, unsure, judged, exempt
    *may_have(assignee=_NAME),
    *has(note=sa.Text),
    *may_have(proposal=sa.JSON),  # a verdict that a person may confirm
    *may_have(group_name=_NAME),  # of the group that it was in when somebody named it
    sa.Column("exemption", ID, index=True),  # that keeps it out of the inbox
    # What the live version says of it, so that the inbox follows what was learnt.
    *has(now_version=ID, now_score=sa.Float, now_p_value=sa.Float, now_kind=sa.Text),
    *may_have(now_kind_probability=sa.Float),
    *has(now_alarm=sa.Boolean),
    sa.Index("rows_of_inbox", "model", "state", "now_alarm", "at"),
    sa.Index("rows_of_entity", "model", "entity", "at"),
    sa.Index("rows_to_refresh", "model", "now_version"),
)

verdicts = _numbered(
    "verdicts",
    sa.Column("row", ID, nullable=False, index=True),
    *has(model=_NAME, verdict=_WORD),
    *may_have(kind=sa.Text),
    *has(note=sa.Text, by=_NAME, at=sa.Float),
    *may_have(version=ID),  # that has learnt it; none where it teaches nothing
    *may_have(undone_at=sa.Float, undone_by=_NAME),
    *may_have(undone_version=ID),  # that has forgotten it, where one has
)

# Alarms that are expected for a while.
exemptions = _numbered(
    "exemptions",
    *has(model=_NAME),
    *may_have(entity=_TEXT, column=sa.Text, low=sa.Float, high=sa.Float),
    *has(expires=sa.Float, note=sa.Text, by=_NAME, at=sa.Float),
    *may_have(revoked_at=sa.Float, revoked_by=_NAME),
    sa.Index("exemptions_of_model", "model", "expires"),
)

# The last rows of each run of a model with windows, from which those of the next row go on.
runs = _table(
    "runs",
    _key("model", _NAME),
    _key("run", sa.String(16)),  # a hash of its name
    *has(name=_TEXT, time=sa.Float),  # of the last row
    *has(time_shown=sa.Text),  # as it came
    *has(last=sa.LargeBinary),  # floats: rows, by columns with windows
    *has(at=sa.Float),  # when the last row came
)

counts = _table(
    "counts",
    _key("model", _NAME),
    _key("minute", ID, autoincrement=False),
    _key("version", ID, autoincrement=False),
    _key("worker", sa.String(40)),
    *has(rows=sa.Integer, alarms=sa.Integer, shadow_alarms=sa.Integer),
)

monitors = _table(
    "monitors",
    _key("model", _NAME),
    _key("worker", sa.String(40)),
    *has(at=sa.Float, state=sa.LargeBinary),
    *may_have(drift_at=sa.Float),  # when rows were found to have changed
)

# Whom to tell what happens with a model.
subscriptions = _table(
    "subscriptions",
    _key("model", _NAME),
    *has(settings=sa.JSON),
    *has(secret=_HASH),  # that signs what is sent
    *has(known=sa.JSON),  # kinds that are not new
    *has(at=sa.Float),  # what came before is not new
)

# What is to be sent, and what was: the log and the queue in one.
deliveries = _numbered(
    "deliveries",
    *has(model=_NAME, channel=sa.String(10), event=_WORD),  # by webhook or email
    *has(subject=_TEXT),  # what is sent once
    *has(content=sa.JSON, at=sa.Float),
    *has(state=sa.String(10)),  # waiting, sent, failed
    *has(due=sa.Float),  # when it is tried next
    *has(attempts=sa.Integer, error=sa.Text),  # of the last attempt
    sa.Index("deliveries_of_subject", "model", "channel", "event", "subject", unique=True),
    sa.Index("deliveries_due", "state", "due"),
)

people = _table(
    "people",
    _key("name", _NAME),
    *has(role=sa.String(10)),
    sa.Column("token", _HASH, nullable=False, unique=True),  # its hash
    *has(at=sa.Float),
    *may_have(expires=sa.Float),  # null: never
)

# Browsers that people have signed in with. A token that is void ends its sessions.
sessions = _numbered(
    "sessions",
    sa.Column("name", _NAME, nullable=False, index=True),
    sa.Column("key", _HASH, nullable=False, unique=True),  # the hash of its cookie
    *may_have(former=_HASH),  # of the cookie before, for requests under way
    *has(secret=_HASH, at=sa.Float),  # of its forms
    *has(renewed=sa.Float, expires=sa.Float),  # when it got its cookie
)

audit = _numbered("audit", *has(at=sa.Float, who=_NAME, action=sa.String(40), detail=sa.JSON))
