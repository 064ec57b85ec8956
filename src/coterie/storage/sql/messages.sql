-- The ledger proper.

-- name: add_message
INSERT INTO messages (id, chain_id, source_session_id, source_title, target_session_id, target_title, kind, content,
    state, notify, hops, ceiling, created_at, updated_at, turn_id, joined, source_turn_id, via, reply_to, result, truncated,
    error)
VALUES (:id, :chain_id, :source_session_id, :source_title, :target_session_id, :target_title, :kind, :content,
    :state, :notify, :hops, :ceiling, :created_at, :updated_at, :turn_id, :joined, :source_turn_id, :via, :reply_to,
    :result, :truncated, :error)

-- name: get_message
SELECT {messages} FROM messages WHERE id = :id

-- name: move_message for message
UPDATE messages SET state = {target}, turn_id = COALESCE(:turn_id, turn_id), joined = COALESCE(:joined, joined),
    updated_at = :now
WHERE id = :id AND state IN ({sources}) RETURNING {messages}

-- name: settle_messages for message
UPDATE messages SET state = {target}, result = CASE WHEN kind = 'completion' THEN NULL ELSE :result END,
    truncated = CASE WHEN kind = 'completion' THEN 0 ELSE :truncated END, error = :error, updated_at = :now
WHERE turn_id = :turn_id AND state IN ({sources})
RETURNING {messages}

-- A turn sends on its own chain only, and a chain has a bound.

-- name: sent_open
SELECT {messages} FROM messages
WHERE chain_id = :chain_id AND source_turn_id = :turn_id AND kind <> 'completion' AND state IN ('queued', 'running')
ORDER BY number

-- name: completion_of
SELECT {messages} FROM messages WHERE reply_to = :message_id

-- name: newest_inbound
SELECT {messages} FROM messages WHERE target_session_id = :session_id ORDER BY number DESC LIMIT 1

-- name: newest_inbound_of_turn
SELECT {messages} FROM messages
WHERE turn_id = :turn_id AND joined = 'claimed' AND target_session_id = :session_id

-- name: sent_last
SELECT {messages} FROM (SELECT {messages}, number FROM messages
    WHERE source_session_id = :source ORDER BY number DESC LIMIT :window) sent
WHERE target_session_id = :target ORDER BY number DESC LIMIT 1

-- name: open_to
SELECT {messages} FROM messages
WHERE target_session_id = :target AND kind <> 'completion' AND state IN ('queued', 'running') ORDER BY number

-- name: recent_inbound
SELECT {messages}, number FROM messages WHERE target_session_id = :session_id ORDER BY number DESC LIMIT :limit

-- name: recent_outbound
SELECT {messages}, number FROM messages WHERE source_session_id = :session_id ORDER BY number DESC LIMIT :limit

-- name: page_chain
SELECT {messages}, number FROM messages WHERE chain_id = :chain_id AND number > :after ORDER BY number LIMIT :limit

-- name: first_open
SELECT {messages} FROM messages WHERE target_session_id = :session_id AND state IN ('queued', 'running')
ORDER BY CASE WHEN state = 'running' THEN 0 ELSE 1 END, number LIMIT 1

-- name: add_chain
INSERT INTO chains (id, messages, sessions, created_at) VALUES (:id, :messages, :sessions, :created_at)

-- name: get_chain
SELECT id, messages, sessions, created_at FROM chains WHERE id = :id /*pg: FOR NO KEY UPDATE */

-- name: charge_chain
UPDATE chains SET messages = messages + :messages, sessions = sessions + :sessions WHERE id = :id
