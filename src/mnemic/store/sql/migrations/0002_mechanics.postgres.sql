-- What can be thrown away and derived from the events again. Also run when these tables are found missing.

-- Characters start..stop of the text of event `seq`. `terms`: the forward index (store/arrays.py).
-- `kept`: whether it gets a vector and may surface by itself; keyword search covers every chunk. `decided`: 1 when
-- that has been judged, 0 when not yet, -1 for a piece that the worker will cut anew by meaning; `verdict`: the parts of the judgement (engine/judging.py).
-- `same_as`: the chunk that says the same and was there first. `signature`: hash of what it says, 0 for nothing;
-- `digest`: hash of the text its vector is made from. `archived`: why hygiene took it out of the index, '' if it did not.
CREATE TABLE IF NOT EXISTS chunks (
    namespace text COLLATE "C" NOT NULL,
    id        bigint  NOT NULL,
    seq       bigint  NOT NULL,
    start     integer NOT NULL,
    stop      integer NOT NULL,
    words     integer NOT NULL,
    flags     integer NOT NULL,
    kept      integer NOT NULL,
    decided   integer NOT NULL,
    verdict   text COLLATE "C" NOT NULL,
    same_as   bigint,
    signature bigint  NOT NULL,
    digest    bigint  NOT NULL,
    archived  text COLLATE "C" NOT NULL,
    terms     bytea   NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX IF NOT EXISTS chunks_by_event ON chunks (namespace, seq, id);
CREATE INDEX IF NOT EXISTS chunks_by_signature ON chunks (namespace, signature);
CREATE INDEX IF NOT EXISTS chunks_undecided ON chunks (namespace, id) WHERE decided <= 0;
ALTER TABLE chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE chunks FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS chunks_of_namespace ON chunks;
CREATE POLICY chunks_of_namespace ON chunks USING (namespace = current_setting('mnemic.namespace', true));

-- What a chunk is about; `topic` is the key of a topic (domain/topics.py).
CREATE TABLE IF NOT EXISTS chunk_topics (
    namespace  text COLLATE "C" NOT NULL,
    topic      text COLLATE "C" NOT NULL,
    chunk      bigint NOT NULL,
    confidence double precision NOT NULL,
    PRIMARY KEY (namespace, topic, chunk)
);
CREATE INDEX IF NOT EXISTS topics_of_chunk ON chunk_topics (namespace, chunk);
ALTER TABLE chunk_topics ENABLE ROW LEVEL SECURITY;
ALTER TABLE chunk_topics FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS chunk_topics_of_namespace ON chunk_topics;
CREATE POLICY chunk_topics_of_namespace ON chunk_topics USING (namespace = current_setting('mnemic.namespace', true));

-- How a topic was written first. What people rename or merge are events (engine/topics.py).
CREATE TABLE IF NOT EXISTS topics (
    namespace text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    label     text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, key)
);
ALTER TABLE topics ENABLE ROW LEVEL SECURITY;
ALTER TABLE topics FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS topics_of_namespace ON topics;
CREATE POLICY topics_of_namespace ON topics USING (namespace = current_setting('mnemic.namespace', true));

-- `number` is the head's `vector` counter at the time of writing, so that readers ask only for what is new.
-- The column has no dimension: spaces of any dimension share the table (an index has one: store/vectors/pgvector.py).
CREATE TABLE IF NOT EXISTS vectors (
    namespace text COLLATE "C" NOT NULL,
    space     integer NOT NULL,
    chunk     bigint  NOT NULL,
    number    bigint  NOT NULL,
    vector    halfvec NOT NULL,
    PRIMARY KEY (namespace, space, chunk)
);
CREATE INDEX IF NOT EXISTS vectors_by_number ON vectors (namespace, space, number, chunk);
ALTER TABLE vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS vectors_of_namespace ON vectors;
CREATE POLICY vectors_of_namespace ON vectors USING (namespace = current_setting('mnemic.namespace', true));

-- After a loss: vectors of chunks that are gone go too, what is left is judged again, and readers start over. This is
-- about all namespaces, so the owner steps out of row-level security for it.
ALTER TABLE chunks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE vectors NO FORCE ROW LEVEL SECURITY;
DELETE FROM vectors AS v WHERE NOT EXISTS (SELECT 1 FROM chunks AS c WHERE c.namespace = v.namespace AND c.id = v.chunk);
UPDATE chunks SET decided = 0 WHERE decided = 1;
UPDATE heads SET epoch = epoch + 1;
ALTER TABLE chunks FORCE ROW LEVEL SECURITY;
ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
