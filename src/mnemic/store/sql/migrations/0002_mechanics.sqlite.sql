-- What can be thrown away and derived from the events again. Also run when these tables are found missing.

-- Characters start..stop of the text of event `seq`. `terms`: the forward index (store/arrays.py).
-- `kept`: whether it gets a vector and may surface by itself; keyword search covers every chunk.
CREATE TABLE IF NOT EXISTS chunks (
    namespace TEXT    NOT NULL,
    id        INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    start     INTEGER NOT NULL,
    stop      INTEGER NOT NULL,
    words     INTEGER NOT NULL,
    flags     INTEGER NOT NULL,
    kept      INTEGER NOT NULL,
    verdict   TEXT    NOT NULL,
    terms     BLOB    NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT;
CREATE INDEX IF NOT EXISTS chunks_by_event ON chunks (namespace, seq, id);

-- `number` is the head's `vector` counter at the time of writing, so that readers ask only for what is new.
CREATE TABLE IF NOT EXISTS vectors (
    namespace TEXT    NOT NULL,
    space     INTEGER NOT NULL,
    chunk     INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    vector    BLOB    NOT NULL,
    PRIMARY KEY (namespace, space, chunk)
) STRICT;
CREATE INDEX IF NOT EXISTS vectors_by_number ON vectors (namespace, space, number);
