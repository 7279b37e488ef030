-- What a person keeps on purpose (engine/sources.py).

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
