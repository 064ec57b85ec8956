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

-- name: I5 an ended turn has no unsettled message
SELECT m.id FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.state = 'running' AND t.state <> 'running'

-- name: I6 the outcome of a message is the outcome of its turn
SELECT m.id FROM messages m JOIN turns t ON t.id = m.turn_id
WHERE m.state NOT IN ('queued', 'running') AND m.state <> t.state
    AND NOT (m.state = 'cancelled' AND t.state = 'running' AND t.fenced = 1)

-- name: I7 a settled message that asked for a completion has exactly one
SELECT m.id FROM messages m LEFT JOIN messages c ON c.reply_to = m.id
WHERE m.notify = 1 AND m.state NOT IN ('queued', 'running') GROUP BY m.id HAVING COUNT(c.id) <> 1

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

-- name: I16 an idle session with a queue is held or ready
SELECT s.id FROM sessions s WHERE s.held IS NULL AND s.ready IS NULL
    AND EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running')

-- name: I16 a ready session is idle, free and has a queue
SELECT s.id FROM sessions s WHERE s.ready IS NOT NULL AND (s.held IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = s.id AND i.number = s.ready)
    OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running'))

-- name: items are numbered without gaps
SELECT session_id FROM items GROUP BY session_id HAVING COUNT(*) <> MAX(number) OR MIN(number) <> 1

-- name: changes follow the revision without gaps
SELECT s.id FROM sessions s LEFT JOIN changes c ON c.session_id = s.id
GROUP BY s.id, s.revision HAVING COUNT(c.number) <> s.revision OR COALESCE(MAX(c.revision), 0) <> s.revision
