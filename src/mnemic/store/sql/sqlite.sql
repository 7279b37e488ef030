-- Named queries, SQLite. `sql/postgres.sql` holds the same names. Times are microseconds since 1970 in UTC.

-- name: meta
SELECT value FROM meta WHERE key = :key

-- name: meta_put
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: meta_put_once
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING

-- name: heads
SELECT namespace, seq, chunk, vector, epoch FROM heads ORDER BY namespace

-- name: head
SELECT seq, chunk, vector, epoch FROM heads WHERE namespace = :namespace

-- name: head_locked
SELECT seq, chunk, vector, epoch FROM heads WHERE namespace = :namespace

-- name: head_make
INSERT INTO heads (namespace, seq, chunk, vector, epoch) VALUES (:namespace, 0, 0, 0, 0) ON CONFLICT DO NOTHING

-- name: head_put
UPDATE heads SET seq = :seq, chunk = :chunk, vector = :vector, epoch = :epoch WHERE namespace = :namespace

-- name: anchor
SELECT seq, chain FROM anchors WHERE journal = :journal

-- name: anchor_locked
SELECT seq, chain FROM anchors WHERE journal = :journal

-- name: anchor_make
INSERT INTO anchors (journal, seq, chain) VALUES (:journal, 0, x'') ON CONFLICT DO NOTHING

-- name: anchor_put
UPDATE anchors SET seq = :seq, chain = :chain WHERE journal = :journal

-- name: digests
SELECT id, digest, seq FROM events
WHERE namespace = :namespace AND id IN (SELECT unhex(value) FROM json_each(:ids))

-- name: event_put
INSERT INTO events (namespace, seq, id, kind, text, session, channel, role, actor, project, at, recorded_at,
                    importance, trust, data, digest)
VALUES (:namespace, :seq, :id, :kind, :text, :session, :channel, :role, :actor, :project, :at, :recorded_at,
        :importance, :trust, :data, :digest)

-- name: quarantine_put
INSERT INTO quarantine (namespace, id, digest, reason, at, body)
VALUES (:namespace, :id, :digest, :reason, :at, :body) ON CONFLICT DO NOTHING

-- name: quarantine_count
SELECT count(*) FROM quarantine WHERE namespace = :namespace

-- name: events_by_seq
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = :namespace AND seq IN (SELECT value FROM json_each(:seqs))

-- name: event_by_id
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = :namespace AND id = :id

-- name: events
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events
WHERE namespace = :namespace AND seq > :after AND (:last IS NULL OR seq <= :last)
  AND (:session IS NULL OR session = :session)
  AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until)
  AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
  AND (:roles IS NULL OR role IN (SELECT value FROM json_each(:roles)))
ORDER BY seq LIMIT :limit

-- name: edits
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = :namespace AND kind = 'edit' ORDER BY seq

-- name: events_holding
SELECT seq FROM events
WHERE namespace = :namespace AND instr(lower(text), :needle) > 0 ORDER BY seq DESC LIMIT :limit

-- name: events_without_chunks
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events AS e
WHERE namespace = :namespace AND kind NOT IN ('marker', 'edit') AND trim(text) != ''
  AND NOT EXISTS (SELECT 1 FROM chunks AS c WHERE c.namespace = e.namespace AND c.seq = e.seq)
ORDER BY seq LIMIT :limit

-- name: events_provisional
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = :namespace AND seq IN (
    SELECT seq FROM chunks WHERE namespace = :namespace AND decided = -1 ORDER BY id LIMIT :limit)
ORDER BY seq

-- name: sessions
SELECT session, min(seq), max(seq), count(*), min(at), max(at) FROM events
WHERE namespace = :namespace AND session IS NOT NULL GROUP BY session ORDER BY max(seq) DESC LIMIT :limit

-- name: counts
SELECT (SELECT count(*) FROM events WHERE namespace = :namespace),
       (SELECT count(*) FROM chunks WHERE namespace = :namespace),
       (SELECT count(*) FROM chunks WHERE namespace = :namespace AND kept = 1)

-- name: chunk_put
INSERT INTO chunks (namespace, id, seq, start, stop, words, flags, kept, decided, verdict, same_as, signature, digest,
                    archived, terms)
VALUES (:namespace, :id, :seq, :start, :stop, :words, :flags, :kept, :decided, :verdict, NULL, :signature, :digest, '',
        :terms)

-- name: chunks_delete
DELETE FROM chunks WHERE namespace = :namespace AND seq IN (SELECT value FROM json_each(:seqs))

-- name: chunks_after
SELECT c.id, c.seq, c.words, c.flags, c.terms, e.session, e.role, e.actor, e.kind, e.channel, e.project, e.at
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = :namespace AND c.id > :after AND c.archived = '' ORDER BY c.id LIMIT :limit

-- name: chunks_by_id
SELECT c.id, c.seq, c.start, c.stop, c.same_as FROM chunks AS c
WHERE c.namespace = :namespace AND c.id IN (SELECT value FROM json_each(:ids))

-- name: chunk
SELECT id, seq, start, stop, words, flags, kept, decided, verdict, same_as, archived
FROM chunks WHERE namespace = :namespace AND id = :id

-- name: chunks_of_event
SELECT id, seq, start, stop, same_as FROM chunks WHERE namespace = :namespace AND seq = :seq ORDER BY id

-- name: chunks_without_vector
SELECT c.id, c.start, c.stop, c.decided, c.signature, c.digest, e.seq, e.text, e.actor, e.role, e.kind, e.trust
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = :namespace AND c.id > :after AND c.kept = 1 AND c.decided = 1 AND c.archived = '' AND NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.namespace = c.namespace AND v.space = :space AND v.chunk = c.id)
ORDER BY c.id LIMIT :limit

-- name: chunks_without_vector_count
SELECT count(*) FROM chunks AS c
WHERE c.namespace = :namespace AND c.kept = 1 AND c.archived = '' AND (c.decided = 0 OR NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.namespace = c.namespace AND v.space = :space AND v.chunk = c.id))

-- name: chunks_undecided
SELECT c.id, c.start, c.stop, c.decided, c.signature, c.digest, e.seq, e.text, e.actor, e.role, e.kind, e.trust
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = :namespace AND c.id > :after AND c.decided <= 0 AND c.decided = 0 AND c.archived = '' ORDER BY c.id LIMIT :limit

-- name: chunk_decide
UPDATE chunks SET kept = :kept, decided = 1, verdict = :verdict, same_as = :same_as
WHERE namespace = :namespace AND id = :id

-- name: chunks_saying
SELECT c.signature, c.id, c.start, c.stop, e.text
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = :namespace AND c.kept = 1 AND c.archived = '' AND c.same_as IS NULL
  AND c.signature IN (SELECT value FROM json_each(:signatures))
ORDER BY c.id

-- name: chunks_undecide
UPDATE chunks SET kept = 1, decided = 0, same_as = NULL WHERE namespace = :namespace AND archived = ''

-- name: chunks_archive
UPDATE chunks SET archived = :reason
WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids))

-- name: chunks_archived
SELECT c.id, c.seq, c.start, c.stop, c.archived, e.text
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = :namespace AND c.archived != '' ORDER BY c.id LIMIT :limit

-- name: topic_add
INSERT INTO chunk_topics (namespace, topic, chunk, confidence)
VALUES (:namespace, :topic, :chunk, :confidence) ON CONFLICT DO NOTHING

-- name: topics_drop
DELETE FROM chunk_topics
WHERE namespace = :namespace AND chunk IN (SELECT value FROM json_each(:ids))

-- name: topics_of_chunks
SELECT chunk, topic, confidence FROM chunk_topics INDEXED BY topics_of_chunk
WHERE namespace = :namespace AND chunk IN (SELECT value FROM json_each(:ids)) ORDER BY chunk, confidence DESC, topic

-- name: chunks_of_topics
SELECT DISTINCT chunk FROM chunk_topics
WHERE namespace = :namespace AND topic IN (SELECT value FROM json_each(:topics)) ORDER BY chunk

-- name: topic_counts
SELECT topic, count(*) FROM chunk_topics WHERE namespace = :namespace GROUP BY topic ORDER BY topic

-- name: topic_labels
SELECT key, label FROM topics WHERE namespace = :namespace ORDER BY key

-- name: topic_labels_of
SELECT key, label FROM topics WHERE namespace = :namespace AND key IN (SELECT value FROM json_each(:keys))

-- name: topic_label_new
INSERT INTO topics (namespace, key, label) VALUES (:namespace, :key, :label) ON CONFLICT DO NOTHING

-- name: vector_put
INSERT INTO vectors (namespace, space, chunk, number, vector)
VALUES (:namespace, :space, :chunk, :number, :vector) ON CONFLICT DO NOTHING

-- name: vectors_after
SELECT chunk, number, vector FROM vectors
WHERE namespace = :namespace AND space = :space AND (number, chunk) > (:number, :chunk)
ORDER BY number, chunk LIMIT :limit

-- name: vectors_by_chunk
SELECT chunk, vector FROM vectors
WHERE namespace = :namespace AND space = :space AND chunk IN (SELECT value FROM json_each(:ids))

-- name: vectors_by_digest
SELECT c.digest, max(c.id) FROM chunks AS c
JOIN vectors AS v ON v.namespace = c.namespace AND v.space = :space AND v.chunk = c.id
WHERE c.namespace = :namespace AND c.signature IN (SELECT value FROM json_each(:signatures))
  AND c.digest IN (SELECT value FROM json_each(:digests)) GROUP BY c.digest

-- name: vectors_drop
DELETE FROM vectors
WHERE namespace = :namespace AND space = :space AND chunk IN (SELECT value FROM json_each(:ids))

-- name: vectors_count
SELECT count(*) FROM vectors WHERE namespace = :namespace AND space = :space

-- name: vectors_prune
DELETE FROM vectors WHERE namespace = :namespace AND space = :space

-- name: exclusive
-- Wait until no other transaction works on `name`, and keep it until the end. SQLite has one writer anyway.
SELECT :name

-- name: spaces
SELECT id, label, provider, model, dimension, scheme, state FROM spaces ORDER BY id

-- name: space_put
INSERT INTO spaces (label, provider, model, dimension, scheme, state)
VALUES (:label, :provider, :model, :dimension, :scheme, :state) ON CONFLICT (label) DO UPDATE SET state = excluded.state

-- name: space_state
UPDATE spaces SET state = :state WHERE id = :id

-- name: space_drop
DELETE FROM spaces WHERE id = :id

-- name: lease
SELECT holder, token, expires_at FROM leases WHERE name = :name

-- name: lease_put
INSERT INTO leases (name, holder, token, expires_at) VALUES (:name, :holder, :token, :expires_at)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at

-- name: usage_add
INSERT INTO usage (namespace, subject, day, count) VALUES (:namespace, :subject, :day, :count)
ON CONFLICT (namespace, subject, day) DO UPDATE SET count = count + excluded.count

-- name: usage
SELECT subject, sum(count), max(day) FROM usage WHERE namespace = :namespace GROUP BY subject ORDER BY subject

-- name: sources
SELECT id, name, type, uri, digest, version, session, first, last, summary, created_at
FROM sources WHERE namespace = :namespace ORDER BY created_at, id

-- name: source_put
INSERT INTO sources (namespace, id, name, type, uri, digest, version, session, first, last, summary, created_at)
VALUES (:namespace, :id, :name, :type, :uri, :digest, :version, :session, :first, :last, :summary, :created_at)
ON CONFLICT (namespace, id) DO UPDATE SET name = excluded.name, digest = excluded.digest, version = excluded.version,
    first = excluded.first, last = excluded.last, summary = excluded.summary

-- name: copy_events
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data, digest
FROM events WHERE namespace = :namespace AND seq > :after AND seq <= :last ORDER BY seq

-- name: copy_chunks
SELECT id, seq, start, stop, words, flags, kept, decided, verdict, same_as, signature, digest, archived, terms
FROM chunks WHERE namespace = :namespace AND id > :after AND id <= :last ORDER BY id

-- name: copy_chunk_put
INSERT INTO chunks (namespace, id, seq, start, stop, words, flags, kept, decided, verdict, same_as, signature, digest,
                    archived, terms)
VALUES (:namespace, :id, :seq, :start, :stop, :words, :flags, :kept, :decided, :verdict, :same_as, :signature, :digest,
        :archived, :terms)
ON CONFLICT (namespace, id) DO UPDATE SET kept = excluded.kept, decided = excluded.decided, verdict = excluded.verdict,
    same_as = excluded.same_as, archived = excluded.archived

-- name: copy_chunk_topics
SELECT topic, chunk, confidence FROM chunk_topics
WHERE namespace = :namespace AND chunk > :after AND chunk <= :last ORDER BY chunk, topic

-- name: copy_vectors
SELECT chunk, number, vector FROM vectors
WHERE namespace = :namespace AND space = :space AND chunk > :after AND chunk <= :last ORDER BY chunk

-- name: copy_quarantine
SELECT id, digest, reason, at, body FROM quarantine WHERE namespace = :namespace ORDER BY id, digest

-- name: copy_usage
SELECT subject, day, count FROM usage WHERE namespace = :namespace ORDER BY subject, day

-- name: copy_usage_put
INSERT INTO usage (namespace, subject, day, count) VALUES (:namespace, :subject, :day, :count)
ON CONFLICT (namespace, subject, day) DO UPDATE SET count = excluded.count
