-- The log. `namespace` leads every key. Times are microseconds since 1970 in UTC. Tables live in the first schema of
-- the role's search_path. COLLATE "C": byte order, the same as SQLite's on every server.
--
-- Row-level security is the second lock: the first is the `namespace = ...` of every query. FORCE makes it hold for the
-- owner too. Tables of counters and settings, which hold no text of a namespace, are without it.

CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- Counters of a namespace. `epoch` moves when rows that readers hold in memory change or go away.
CREATE TABLE heads (
    namespace text COLLATE "C" PRIMARY KEY,
    seq       bigint NOT NULL,
    chunk     bigint NOT NULL,
    vector    bigint NOT NULL,
    epoch     bigint NOT NULL
);

CREATE TABLE events (
    namespace   text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    id          bytea  NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    text        text COLLATE "C" NOT NULL,
    session     text COLLATE "C",
    channel     text COLLATE "C" NOT NULL,
    role        text COLLATE "C" NOT NULL,
    actor       text COLLATE "C" NOT NULL,
    project     text COLLATE "C" NOT NULL,
    at          bigint NOT NULL,
    recorded_at bigint NOT NULL,
    importance  double precision NOT NULL,
    trust       text COLLATE "C" NOT NULL,
    data        text COLLATE "C" NOT NULL,
    digest      bytea NOT NULL,
    PRIMARY KEY (namespace, seq)
);
CREATE UNIQUE INDEX events_by_id ON events (namespace, id);
CREATE INDEX events_by_session ON events (namespace, session, seq);
CREATE INDEX events_by_time ON events (namespace, at);
CREATE INDEX events_edits ON events (namespace, seq) WHERE kind = 'edit';
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;
CREATE POLICY events_of_namespace ON events USING (namespace = current_setting('mnemic.namespace', true));

-- How far each journal has been applied: the anchor that makes replay exact and gaps visible.
CREATE TABLE anchors (
    journal bytea PRIMARY KEY,
    seq     bigint NOT NULL,
    chain   bytea NOT NULL
);

-- An event whose id was already taken by other content, found only when it was applied. Kept, never guessed about.
CREATE TABLE quarantine (
    namespace text COLLATE "C" NOT NULL,
    id        bytea  NOT NULL,
    digest    bytea  NOT NULL,
    reason    text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    body      text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, id, digest)
);
ALTER TABLE quarantine ENABLE ROW LEVEL SECURITY;
ALTER TABLE quarantine FORCE ROW LEVEL SECURITY;
CREATE POLICY quarantine_of_namespace ON quarantine USING (namespace = current_setting('mnemic.namespace', true));

-- `state`: serving (answers queries) | building (a reindex fills it) | retired (kept until pruned).
CREATE TABLE spaces (
    id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    label     text COLLATE "C" NOT NULL UNIQUE,
    provider  text COLLATE "C" NOT NULL,
    model     text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    scheme    text COLLATE "C" NOT NULL,
    state     text COLLATE "C" NOT NULL
);

CREATE TABLE leases (
    name       text COLLATE "C" PRIMARY KEY,
    holder     text COLLATE "C" NOT NULL,
    token      bigint NOT NULL,
    expires_at bigint NOT NULL
);

-- What was recalled when, by subject and day.
CREATE TABLE usage (
    namespace text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    day       bigint NOT NULL,
    count     bigint NOT NULL,
    PRIMARY KEY (namespace, subject, day)
);
ALTER TABLE usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage FORCE ROW LEVEL SECURITY;
CREATE POLICY usage_of_namespace ON usage USING (namespace = current_setting('mnemic.namespace', true));
