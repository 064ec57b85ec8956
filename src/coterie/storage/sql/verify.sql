-- Each statement returns the ids that break the invariant it is named after; none on a sound ledger.

-- name: I1 a session has at most one running turn
SELECT session_id FROM turns WHERE state = 'running' GROUP BY session_id HAVING COUNT(*) > 1

-- name: I2 a message has a turn exactly if it left the queue by one
SELECT m.id FROM messages m LEFT JOIN turns t ON t.id = m.turn_id
WHERE (m.state = 'queued' AND m.turn_id IS NOT NULL)
    OR (m.state NOT IN ('queued', 'cancelled') AND m.turn_id IS NULL)
    OR (m.turn_id IS NOT NULL AND t.id IS NULL)

-- name: I2 a turn that was created for a message has that message
SELECT t.id FROM turns t LEFT JOIN messages m ON m.id = t.message_id
WHERE t.kind <> 'prompt' AND (m.id IS NULL OR m.turn_id <> t.id OR m.joined <> 'claimed')

-- name: I2 an input has one turn
SELECT input_id FROM turns GROUP BY input_id HAVING COUNT(*) > 1

-- name: I2 no input both waits and has a turn
SELECT i.id FROM inputs i JOIN turns t ON t.input_id = i.id

-- name: I3 a queued message has an input
SELECT m.id FROM messages m LEFT JOIN inputs i ON i.message_id = m.id WHERE m.state = 'queued' AND i.id IS NULL

-- name: I3 the message of an input is queued
SELECT i.id FROM inputs i LEFT JOIN messages m ON m.id = i.message_id
WHERE i.message_id IS NOT NULL AND (m.id IS NULL OR m.state <> 'queued')

-- name: I3 a marked input has a message that is queued
SELECT i.id FROM inputs i LEFT JOIN messages m ON m.id = i.message_id
WHERE i.waiting IS NOT NULL AND (m.id IS NULL OR m.state <> 'queued' OR (m.kind = 'completion' AND i.waiting <> 'budget'))

-- name: I3 steering and offers are for a running turn of their session
SELECT i.id FROM inputs i LEFT JOIN turns t ON t.id = i.turn_id AND t.session_id = i.session_id AND t.state = 'running'
WHERE (i.kind = 'steer' OR i.turn_id IS NOT NULL) AND t.id IS NULL

-- name: I3 a turn knows that something is meant for it
SELECT t.id FROM inputs i JOIN turns t ON t.id = i.turn_id WHERE t.news = 0

-- name: I5 an ended turn has no unsettled message
SELECT m.id FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.state = 'running' AND t.state <> 'running'

-- name: I6 the outcome of a message is the outcome of its turn
SELECT m.id FROM messages m JOIN turns t ON t.id = m.turn_id
WHERE m.state NOT IN ('queued', 'running') AND m.state <> t.state
    AND NOT (m.state = 'cancelled' AND t.state = 'running' AND t.fenced = 1)

-- A sender that was deleted is told nothing more.

-- name: I7 a settled message that asked for a completion has exactly one
SELECT m.id FROM messages m LEFT JOIN messages c ON c.reply_to = m.id
WHERE m.notify = 1 AND m.state NOT IN ('queued', 'running') GROUP BY m.id, m.source_session_id
HAVING COUNT(c.id) > 1 OR (COUNT(c.id) = 0
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = m.source_session_id AND s.deleted_at IS NOT NULL))

-- name: I7 only a settled message that asked for it has a completion
SELECT c.id FROM messages c LEFT JOIN messages m ON m.id = c.reply_to
WHERE c.reply_to IS NOT NULL AND (m.id IS NULL OR m.notify = 0 OR m.state IN ('queued', 'running'))

-- name: I8 a completion goes to the session that sent the message
SELECT c.id FROM messages c JOIN messages m ON m.id = c.reply_to
WHERE c.target_session_id <> m.source_session_id OR c.source_session_id <> m.target_session_id

-- name: I9 no turn of an earlier epoch runs
SELECT t.id FROM turns t JOIN hosts h ON h.id = t.host_id WHERE t.state = 'running' AND t.epoch < h.epoch

-- name: I10 a message comes from a turn of its source, or is marked
SELECT m.id FROM messages m LEFT JOIN turns t ON t.id = m.source_turn_id
WHERE m.kind <> 'completion' AND (
    (m.source_turn_id IS NULL AND m.via IS NULL)
    OR (m.source_turn_id IS NOT NULL AND (t.id IS NULL OR t.session_id <> m.source_session_id)))

-- name: I11 a turn has at most the permission of the message that started it
SELECT t.id FROM turns t JOIN messages m ON m.id = t.message_id
WHERE (m.ceiling = 'ask' AND t.permission <> 'ask') OR (m.ceiling = 'accept-edits' AND t.permission = 'auto')

-- name: I12 a completion carries one hop less than what it answers
SELECT c.id FROM messages c JOIN messages m ON m.id = c.reply_to
WHERE c.hops <> CASE WHEN m.hops > 0 THEN m.hops - 1 ELSE 0 END

-- name: I12 a retry may do what it repeats and no more
SELECT r.id FROM messages r LEFT JOIN messages m ON m.id = r.retry_of
WHERE r.retry_of IS NOT NULL AND (m.id IS NULL OR m.kind = 'completion' OR m.state IN ('queued', 'running')
    OR r.chain_id <> m.chain_id OR r.hops <> m.hops OR r.ceiling <> m.ceiling OR r.kind <> m.kind
    OR r.source_session_id <> m.source_session_id OR r.target_session_id <> m.target_session_id
    OR r.via IS NULL)

-- The completions that a cancel writes into the turns that it has fenced come too late to bound them.

-- name: I12 a turn has at most the hops of every message that joined it
SELECT t.id FROM turns t JOIN messages m ON m.turn_id = t.id
WHERE t.hops > m.hops AND NOT (t.fenced = 1 AND m.joined = 'absorbed')

-- name: I12 a chain has counted at least the messages that it has
SELECT m.chain_id FROM messages m LEFT JOIN chains c ON c.id = m.chain_id
WHERE m.kind <> 'completion' GROUP BY m.chain_id HAVING COUNT(*) > COALESCE(MAX(c.messages), 0)

-- name: I16 what waits across projects has an open question
SELECT i.id FROM inputs i JOIN messages m ON m.id = i.message_id
LEFT JOIN permission_requests r ON r.source_session_id = m.source_session_id AND r.target_session_id = i.session_id
WHERE i.waiting = 'across_projects' AND r.id IS NULL

-- name: an open question has something that waits for its answer
SELECT r.id FROM permission_requests r WHERE NOT EXISTS (
    SELECT 1 FROM inputs i JOIN messages m ON m.id = i.message_id WHERE i.waiting = 'across_projects'
    AND i.session_id = r.target_session_id AND m.source_session_id = r.source_session_id)

-- name: I16 an idle session with a queue is held or ready, or all of it waits for a person
SELECT s.id FROM sessions s WHERE s.held IS NULL AND s.ready IS NULL
    AND EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = s.id AND i.waiting IS NULL)
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running')

-- name: I16 a ready session is idle, free and has a queue
SELECT s.id FROM sessions s WHERE s.ready IS NOT NULL AND (s.held IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = s.id AND i.number = s.ready AND i.waiting IS NULL)
    OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running'))

-- What it has sent may still wait for a person's answer elsewhere.

-- name: a deleted session runs nothing, waits for nothing and may do nothing
SELECT s.id FROM sessions s WHERE s.deleted_at IS NOT NULL AND (s.held IS NOT NULL
    OR EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = s.id)
    OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running')
    OR EXISTS (SELECT 1 FROM permission_requests r WHERE r.target_session_id = s.id)
    OR EXISTS (SELECT 1 FROM call_grants g WHERE g.session_id = s.id)
    OR EXISTS (SELECT 1 FROM grants g WHERE g.source_session_id = s.id)
    OR EXISTS (SELECT 1 FROM grants g WHERE g.target_session_id = s.id))

-- The transcript of a deleted session is purged from its beginning.

-- name: items are numbered without gaps
SELECT i.session_id FROM items i LEFT JOIN sessions s ON s.id = i.session_id
GROUP BY i.session_id, s.deleted_at HAVING COUNT(*) <> MAX(i.number) - MIN(i.number) + 1
    OR (MIN(i.number) <> 1 AND s.deleted_at IS NULL)

-- name: changes follow the revision without gaps
SELECT s.id FROM sessions s LEFT JOIN changes c ON c.session_id = s.id
GROUP BY s.id, s.revision HAVING COUNT(c.number) <> s.revision OR COALESCE(MAX(c.revision), 0) <> s.revision
