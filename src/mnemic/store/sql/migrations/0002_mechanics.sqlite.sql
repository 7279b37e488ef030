-- What can be thrown away and derived from the events again. Also run when these tables are found missing.

-- Characters start..stop of the text of event `seq`. `terms`: the forward index (store/arrays.py).
-- `kept`: whether it gets a vector and may surface by itself; keyword search covers every chunk. `decided`: 1 when
-- that has been judged, 0 when not yet, -1 for a piece that the worker will cut anew by meaning; `verdict`: the parts of the judgement (engine/judging.py).
-- `same_as`: the chunk that says the same and was there first. `signature`: hash of what it says, 0 for nothing;
-- `digest`: hash of the text its vector is made from. `archived`: why hygiene took it out of the index, '' if it did not.
CREATE TABLE IF NOT EXISTS chunks (
    namespace TEXT    NOT NULL,
    id        INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    start     INTEGER NOT NULL,
    stop      INTEGER NOT NULL,
    words     INTEGER NOT NULL,
    flags     INTEGER NOT NULL,
    kept      INTEGER NOT NULL,
    decided   INTEGER NOT NULL,
    verdict   TEXT    NOT NULL,
    same_as   INTEGER,
    signature INTEGER NOT NULL,
    digest    INTEGER NOT NULL,
    archived  TEXT    NOT NULL,
    terms     BLOB    NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT;
CREATE INDEX IF NOT EXISTS chunks_by_event ON chunks (namespace, seq, id);
CREATE INDEX IF NOT EXISTS chunks_by_signature ON chunks (namespace, signature);
CREATE INDEX IF NOT EXISTS chunks_undecided ON chunks (namespace, id) WHERE decided <= 0;

-- What a chunk is about; `topic` is the key of a topic (domain/topics.py).
CREATE TABLE IF NOT EXISTS chunk_topics (
    namespace  TEXT    NOT NULL,
    topic      TEXT    NOT NULL,
    chunk      INTEGER NOT NULL,
    confidence REAL    NOT NULL,
    PRIMARY KEY (namespace, topic, chunk)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS topics_of_chunk ON chunk_topics (namespace, chunk);

-- How a topic was written first. What people rename or merge are events (engine/topics.py).
CREATE TABLE IF NOT EXISTS topics (
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    label     TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

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

-- After a loss: vectors of chunks that are gone go too, what is left is judged again, and readers start over.
DELETE FROM vectors AS v WHERE NOT EXISTS (SELECT 1 FROM chunks AS c WHERE c.namespace = v.namespace AND c.id = v.chunk);
UPDATE chunks SET decided = 0 WHERE decided = 1;
UPDATE heads SET epoch = epoch + 1;
