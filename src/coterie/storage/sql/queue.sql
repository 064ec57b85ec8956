-- Inputs and turns.

-- name: add_input
INSERT INTO inputs (id, session_id, kind, rank, chain_id, created_at, text, message_id)
VALUES (:id, :session_id, :kind, :rank, :chain_id, :created_at, :text, :message_id)

-- name: places
SELECT
    COUNT(CASE WHEN kind = 'prompt' THEN 1 END),
    COUNT(CASE WHEN kind IN ('task', 'message') THEN 1 END),
    COUNT(CASE WHEN kind = 'completion' THEN 1 END),
    EXISTS (SELECT 1 FROM turns WHERE session_id = :id AND state = 'running')
FROM inputs WHERE session_id = :id

-- name: heads
SELECT * FROM (SELECT {inputs} FROM inputs WHERE session_id = :id AND kind = 'prompt' ORDER BY rank, number LIMIT 1) p
UNION ALL
SELECT * FROM (SELECT {inputs} FROM inputs WHERE session_id = :id AND kind <> 'prompt' ORDER BY rank, number LIMIT 1) m

-- name: remove_input
DELETE FROM inputs WHERE id = :id

-- name: remove_input_of_message
DELETE FROM inputs WHERE message_id = :message_id

-- name: add_turn
INSERT INTO turns (id, session_id, input_id, kind, message_id, state, host_id, epoch, permission, chain_id, hops, fenced,
    created_at, truncated)
VALUES (:id, :session_id, :input_id, :kind, :message_id, 'running', :host_id, :epoch, :permission, :chain_id, :hops, 0,
    :created_at, 0)
ON CONFLICT DO NOTHING

-- name: lower_hops
UPDATE turns SET hops = :hops WHERE id = :id AND hops > :hops

-- name: get_turn
SELECT {turns} FROM turns WHERE id = :id

-- name: running_turn
SELECT {turns} FROM turns WHERE session_id = :session_id AND state = 'running'

-- name: newest_turn
SELECT {turns} FROM turns WHERE session_id = :session_id ORDER BY number DESC LIMIT 1

-- name: turn_of_input
SELECT {turns} FROM turns WHERE input_id = :input_id AND kind = 'prompt'

-- name: fence_turn
UPDATE turns SET fenced = 1 WHERE id = :id AND state = 'running'

-- name: settle_turn for turn
UPDATE turns SET state = {target}, ended_at = :ended_at, result = :result, truncated = :truncated,
    error_code = :error_code, error = :error, input_tokens = :input_tokens, output_tokens = :output_tokens
WHERE id = :id AND host_id = :host_id AND epoch = :epoch AND state IN ({sources})

-- The session is named so that the small index of running turns is read, not the table.

-- name: left_running
SELECT {turns} FROM turns WHERE state = 'running' AND session_id > '' AND host_id = :host_id AND epoch < :epoch
ORDER BY session_id

-- name: running_here
SELECT {turns} FROM turns WHERE state = 'running' AND session_id > '' AND host_id = :host_id AND epoch = :epoch
ORDER BY session_id

-- name: append_item
INSERT INTO items (session_id, number, turn_id, kind, body, created_at)
VALUES (:session_id,
    (SELECT COALESCE(MAX(number), 0) + 1 FROM items WHERE session_id = :session_id),
    :turn_id, :kind, :body, :now)
RETURNING number

-- name: page_items
SELECT number, turn_id, kind, body, created_at FROM items
WHERE session_id = :session_id AND number > :after ORDER BY number LIMIT :limit
