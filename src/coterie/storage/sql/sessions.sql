-- Sessions, their links and their hosts.

-- name: begin_epoch
INSERT INTO hosts (id, epoch, started_at) VALUES (:id, 1, :now)
ON CONFLICT (id) DO UPDATE SET epoch = hosts.epoch + 1, started_at = excluded.started_at
RETURNING id, epoch

-- name: this_host
SELECT id FROM hosts ORDER BY started_at DESC LIMIT 1

-- name: get_sessions
SELECT {s.sessions}, l.created_by_session_id
FROM sessions s LEFT JOIN session_links l ON l.session_id = s.id
WHERE s.id IN (:ids...) AND s.deleted_at IS NULL

-- name: known_session
SELECT {s.sessions}, l.created_by_session_id, s.deleted_at IS NOT NULL
FROM sessions s LEFT JOIN session_links l ON l.session_id = s.id
WHERE s.id = :id

-- name: add_session
INSERT INTO sessions
    (id, title, project_path, model, permission_mode, held, streak, ready, revision, created_at, updated_at, inbound,
    current_turn, thinking, worktree)
VALUES
    (:id, :title, :project_path, :model, :permission_mode, :held, :streak, NULL, 0, :created_at, :updated_at, :inbound,
    :current_turn, :thinking, :worktree)

-- name: add_link
INSERT INTO session_links (session_id, created_by_session_id, plugin, created_at)
VALUES (:session_id, :created_by, :plugin, :now)

-- name: configure_session
UPDATE sessions SET title = :title, model = :model, permission_mode = :permission_mode, inbound = :inbound,
    current_turn = :current_turn, thinking = :thinking
WHERE id = :id

-- name: free_session
UPDATE sessions SET held = NULL WHERE id = :id

-- name: hold_session
UPDATE sessions SET held = :held WHERE id = :id AND held IS NULL AND deleted_at IS NULL

-- name: archive_session
UPDATE sessions SET held = 'archived' WHERE id = :id

-- name: bury_session
UPDATE sessions SET deleted_at = :now, held = NULL, project_path = NULL, model = NULL, worktree = NULL WHERE id = :id

-- name: set_streak
UPDATE sessions SET streak = :streak WHERE id = :id

-- Steering waits for a turn and not in the queue: after a crash it is history.

-- name: tell_waiting
INSERT INTO changes (session_id, revision, kind, ref, at)
SELECT id, revision + 1, 'held', id, :now FROM sessions
WHERE held IS NULL AND id IN (SELECT session_id FROM inputs WHERE session_id > '' AND kind <> 'steer')

-- name: hold_waiting
UPDATE sessions SET held = :held, ready = NULL, revision = revision + 1
WHERE held IS NULL AND id IN (SELECT session_id FROM inputs WHERE session_id > '' AND kind <> 'steer')

-- name: held_sessions
SELECT id FROM sessions WHERE held = 'restart' ORDER BY number

-- name: oldest_ready
SELECT id FROM sessions WHERE ready IS NOT NULL AND id <> :other ORDER BY ready LIMIT 1

-- name: page_sessions
SELECT {s.sessions}, l.created_by_session_id, s.number,
    EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running'),
    EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = s.id),
    (SELECT t.state FROM turns t WHERE t.session_id = s.id ORDER BY t.number DESC LIMIT 1)
FROM sessions s LEFT JOIN session_links l ON l.session_id = s.id
WHERE s.deleted_at IS NULL AND (s.updated_at, s.number) < (:updated_at, :number)
ORDER BY s.updated_at DESC, s.number DESC LIMIT :limit

-- name: newest_names
SELECT id, title FROM sessions WHERE deleted_at IS NULL ORDER BY updated_at DESC, number DESC LIMIT :limit

-- name: created_sessions
SELECT s.id, s.title, s.deleted_at IS NULL FROM session_links l JOIN sessions s ON s.id = l.session_id
WHERE l.created_by_session_id = :id ORDER BY s.number DESC LIMIT :limit

-- name: session_references
SELECT id, title, deleted_at IS NULL FROM sessions WHERE id IN (:ids...)

-- name: buried_session
SELECT s.id FROM sessions s
WHERE s.deleted_at IS NOT NULL AND EXISTS (SELECT 1 FROM items i WHERE i.session_id = s.id) LIMIT 1

-- Of all that runs or waits, because a plugin's idle workers have no bound.

-- name: plugin_workers_active
SELECT COUNT(*) FROM (
    SELECT session_id FROM turns WHERE state = 'running' AND session_id > ''
    UNION SELECT session_id FROM inputs WHERE session_id > '') a
JOIN session_links l ON l.session_id = a.session_id WHERE l.plugin = :plugin

-- name: workers_active
SELECT COUNT(*) FROM session_links l WHERE l.created_by_session_id = :id AND (
    EXISTS (SELECT 1 FROM turns t WHERE t.session_id = l.session_id AND t.state = 'running')
    OR EXISTS (SELECT 1 FROM inputs i WHERE i.session_id = l.session_id))

-- name: touch
UPDATE sessions SET revision = revision + v.column2, ready = CASE
    WHEN held IS NULL AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = sessions.id AND t.state = 'running')
    THEN (SELECT MIN(i.number) FROM inputs i WHERE i.session_id = sessions.id AND i.waiting IS NULL) END
FROM (VALUES (:rows...)) v
WHERE id = v.column1 RETURNING id, revision, ready, updated_at

-- name: set_updated
UPDATE sessions SET updated_at = :now WHERE id = :id

-- name: add_changes
INSERT INTO changes (session_id, revision, kind, ref, at) VALUES (?, ?, ?, ?, ?)
