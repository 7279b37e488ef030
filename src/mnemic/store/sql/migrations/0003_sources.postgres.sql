-- What a person keeps on purpose, and the names they give to topics. Both follow from events; see engine/sources.py and
-- engine/topics.py.

-- A document, or a named span of the log. `digest`: of the text that was last read there; `version`: how often it changed.
CREATE TABLE sources (
    namespace  text COLLATE "C" NOT NULL,
    id         bytea   NOT NULL,
    name       text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    uri        text COLLATE "C" NOT NULL,
    digest     text COLLATE "C" NOT NULL,
    version    integer NOT NULL,
    session    text COLLATE "C",
    first      bigint  NOT NULL,
    last       bigint  NOT NULL,
    summary    text COLLATE "C" NOT NULL,
    created_at bigint  NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE UNIQUE INDEX sources_by_uri ON sources (namespace, uri) WHERE uri <> '';
ALTER TABLE sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE sources FORCE ROW LEVEL SECURITY;
CREATE POLICY sources_of_namespace ON sources USING (namespace = current_setting('mnemic.namespace', true));

-- The name a topic is shown by, and the topic it was merged into ('' for none).
CREATE TABLE topics (
    namespace text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    label     text COLLATE "C" NOT NULL,
    into_key  text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, key)
);
ALTER TABLE topics ENABLE ROW LEVEL SECURITY;
ALTER TABLE topics FORCE ROW LEVEL SECURITY;
CREATE POLICY topics_of_namespace ON topics USING (namespace = current_setting('mnemic.namespace', true));
