-- What a person keeps on purpose (engine/sources.py).

-- A document, or a named span of the log. `digest`: of the text that was last read there; `version`: how often it changed.
CREATE TABLE sources (
    namespace  TEXT    NOT NULL,
    id         BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    uri        TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    session    TEXT,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    summary    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sources_by_uri ON sources (namespace, uri) WHERE uri != '';
