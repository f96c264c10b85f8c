BEGIN TRANSACTION;
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE audit (
    id INTEGER NOT NULL,
    at FLOAT NOT NULL,
    who VARCHAR(100) NOT NULL,
    action VARCHAR(40) NOT NULL,
    detail JSON NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE counts (
    model VARCHAR(100) NOT NULL,
    minute INTEGER NOT NULL,
    version INTEGER NOT NULL,
    worker VARCHAR(40) NOT NULL,
    rows INTEGER NOT NULL,
    alarms INTEGER NOT NULL,
    shadow_alarms INTEGER NOT NULL,
    PRIMARY KEY (model, minute, version, worker)
);
CREATE TABLE models (
    name VARCHAR(100) NOT NULL,
    live INTEGER NOT NULL,
    shadow INTEGER,
    settings JSON NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE monitors (
    model VARCHAR(100) NOT NULL,
    worker VARCHAR(40) NOT NULL,
    at FLOAT NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (model, worker)
);
CREATE TABLE people (
    name VARCHAR(100) NOT NULL,
    role VARCHAR(10) NOT NULL,
    token VARCHAR(64) NOT NULL,
    at FLOAT NOT NULL,
    PRIMARY KEY (name),
    UNIQUE (token)
);
CREATE TABLE rows (
    id INTEGER NOT NULL,
    model VARCHAR(100) NOT NULL,
    version INTEGER NOT NULL,
    at FLOAT NOT NULL,
    "row" JSON NOT NULL,
    entity VARCHAR(200),
    score FLOAT NOT NULL,
    p_value FLOAT NOT NULL,
    kind TEXT NOT NULL,
    alarm BOOLEAN NOT NULL,
    drawn BOOLEAN NOT NULL,
    shadow_score FLOAT,
    reasons JSON,
    state VARCHAR(20) NOT NULL,
    assignee VARCHAR(100),
    note TEXT NOT NULL,
    proposal JSON,
    now_version INTEGER NOT NULL,
    now_score FLOAT NOT NULL,
    now_p_value FLOAT NOT NULL,
    now_kind TEXT NOT NULL,
    now_alarm BOOLEAN NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE snapshots (
    version INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (version),
    FOREIGN KEY(version) REFERENCES versions (id)
);
CREATE TABLE verdicts (
    id INTEGER NOT NULL,
    "row" INTEGER NOT NULL,
    model VARCHAR(100) NOT NULL,
    verdict VARCHAR(20) NOT NULL,
    kind TEXT,
    note TEXT NOT NULL,
    "by" VARCHAR(100) NOT NULL,
    at FLOAT NOT NULL,
    version INTEGER,
    undone_at FLOAT,
    undone_by VARCHAR(100),
    undone_version INTEGER,
    PRIMARY KEY (id)
);
CREATE TABLE versions (
    id INTEGER NOT NULL,
    model VARCHAR(100) NOT NULL,
    parent INTEGER,
    operation VARCHAR(20) NOT NULL,
    lesson JSON,
    source INTEGER,
    "by" VARCHAR(100) NOT NULL,
    at FLOAT NOT NULL,
    note TEXT NOT NULL,
    n_rows INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    depth INTEGER NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX rows_of_entity ON rows (model, entity, at);
CREATE INDEX rows_of_inbox ON rows (model, state, now_alarm, at);
CREATE INDEX rows_to_refresh ON rows (model, now_version);
CREATE INDEX ix_verdicts_row ON verdicts ("row");
CREATE INDEX versions_of_model ON versions (model, id);
COMMIT;
