-- The log, its chunks and vectors. `namespace` leads every key. Times are microseconds since 1970 in UTC.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Counters of a namespace. `epoch` moves when rows that readers hold in memory change or go away.
CREATE TABLE heads (
    namespace TEXT PRIMARY KEY,
    seq       INTEGER NOT NULL,
    chunk     INTEGER NOT NULL,
    vector    INTEGER NOT NULL,
    epoch     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    namespace   TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    kind        TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    session     TEXT,
    channel     TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    actor       TEXT    NOT NULL,
    project     TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    importance  REAL    NOT NULL,
    trust       TEXT    NOT NULL,
    data        TEXT    NOT NULL,
    digest      BLOB    NOT NULL,
    PRIMARY KEY (namespace, seq)
) STRICT;
CREATE UNIQUE INDEX events_by_id ON events (namespace, id);
CREATE INDEX events_by_session ON events (namespace, session, seq);
CREATE INDEX events_by_time ON events (namespace, at);
CREATE INDEX events_edits ON events (namespace, seq) WHERE kind = 'edit';

-- How far each journal has been applied: the anchor that makes replay exact and gaps visible.
CREATE TABLE anchors (
    journal BLOB PRIMARY KEY,
    seq     INTEGER NOT NULL,
    chain   BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- An event whose id was already taken by other content, found only when it was applied. Kept, never guessed about.
CREATE TABLE quarantine (
    namespace TEXT    NOT NULL,
    id        BLOB    NOT NULL,
    digest    BLOB    NOT NULL,
    reason    TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    body      TEXT    NOT NULL,
    PRIMARY KEY (namespace, id, digest)
) STRICT, WITHOUT ROWID;

-- `state`: serving (answers queries) | building (a reindex fills it) | retired (kept until pruned).
CREATE TABLE spaces (
    id        INTEGER PRIMARY KEY,
    label     TEXT    NOT NULL UNIQUE,
    provider  TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    dimension INTEGER NOT NULL,
    scheme    TEXT    NOT NULL,
    state     TEXT    NOT NULL
) STRICT;

CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT    NOT NULL,
    token      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was recalled when, by subject and day.
CREATE TABLE usage (
    namespace TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    day       INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (namespace, subject, day)
) STRICT, WITHOUT ROWID;
