-- The ledger. {key}, {serial}, {position}, {int} and {clustered} are spelled by each database.
-- A CHECK names its words with OR: for an IN of three, SQLite builds a table with every row that it checks.

CREATE TABLE hosts (
    id {key} NOT NULL PRIMARY KEY,
    epoch {int} NOT NULL,
    started_at {int} NOT NULL
);

CREATE TABLE sessions (
    number {serial},
    id {key} NOT NULL UNIQUE,
    title TEXT NOT NULL,
    project_path TEXT,
    model TEXT,
    permission_mode TEXT NOT NULL CHECK (
        permission_mode = 'inherit' OR permission_mode = 'ask' OR permission_mode = 'accept-edits'
        OR permission_mode = 'auto'),
    held TEXT CHECK (held IN ('restart', 'archived')),
    streak {int} NOT NULL,
    ready {int},
    revision {int} NOT NULL,
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    inbound TEXT NOT NULL CHECK (inbound = 'accept' OR inbound = 'hold' OR inbound = 'refuse'),
    current_turn {int} NOT NULL,
    thinking TEXT CHECK (thinking = 'off' OR thinking = 'low' OR thinking = 'medium' OR thinking = 'high'),
    worktree TEXT,
    deleted_at {int}
);
CREATE INDEX sessions_updated ON sessions (updated_at, number) WHERE deleted_at IS NULL;
CREATE INDEX sessions_deleted ON sessions (deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX sessions_ready ON sessions (ready) WHERE ready IS NOT NULL;

CREATE TABLE session_links (
    session_id {key} NOT NULL PRIMARY KEY,
    created_by_session_id {key} NOT NULL,
    plugin TEXT,
    created_at {int} NOT NULL
);
CREATE INDEX session_links_creator ON session_links (created_by_session_id);

CREATE TABLE chains (
    id {key} NOT NULL PRIMARY KEY,
    messages {int} NOT NULL,
    sessions {int} NOT NULL,
    created_at {int} NOT NULL,
    cost {int} NOT NULL,
    tokens {int} NOT NULL,
    grants {int} NOT NULL
);

CREATE TABLE messages (
    number {serial},
    id {key} NOT NULL UNIQUE,
    chain_id {key} NOT NULL,
    source_session_id {key} NOT NULL,
    source_title TEXT NOT NULL,
    target_session_id {key} NOT NULL,
    target_title TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'task' OR kind = 'message' OR kind = 'completion'),
    content TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state = 'queued' OR state = 'running' OR state = 'completed' OR state = 'failed' OR state = 'cancelled'
        OR state = 'interrupted'),
    notify {int} NOT NULL,
    hops {int} NOT NULL CHECK (hops >= 0),
    ceiling TEXT NOT NULL CHECK (ceiling = 'ask' OR ceiling = 'accept-edits' OR ceiling = 'auto'),
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    turn_id {key},
    joined TEXT CHECK (joined = 'claimed' OR joined = 'accepted' OR joined = 'absorbed'),
    source_turn_id {key},
    via TEXT CHECK (via = 'person'),
    reply_to {key},
    result TEXT,
    truncated {int} NOT NULL,
    error TEXT,
    retry_of {key},
    expires_at {int},
    CHECK (source_session_id <> target_session_id),
    CHECK ((kind = 'completion') = (reply_to IS NOT NULL)),
    CHECK (kind <> 'completion' OR notify = 0),
    CHECK ((turn_id IS NULL) = (joined IS NULL))
);
CREATE INDEX messages_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX messages_target ON messages (target_session_id, number);
CREATE INDEX messages_source ON messages (source_session_id, number);
CREATE INDEX messages_chain ON messages (chain_id, number);
CREATE INDEX messages_expiry ON messages (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
CREATE UNIQUE INDEX messages_one_completion ON messages (reply_to) WHERE reply_to IS NOT NULL;

CREATE TABLE inputs (
    number {serial},
    id {key} NOT NULL UNIQUE,
    session_id {key} NOT NULL,
    kind TEXT NOT NULL CHECK (
        kind = 'prompt' OR kind = 'steer' OR kind = 'task' OR kind = 'message' OR kind = 'completion'),
    chain_id {key} NOT NULL,
    created_at {int} NOT NULL,
    text TEXT,
    message_id {key},
    promoted {int} NOT NULL,
    place {int} NOT NULL,
    waiting TEXT CHECK (waiting = 'budget' OR waiting = 'policy' OR waiting = 'across_projects'),
    turn_id {key},
    CHECK ((kind IN ('prompt', 'steer')) = (message_id IS NULL)),
    CHECK ((kind IN ('prompt', 'steer')) = (text IS NOT NULL)),
    CHECK (kind <> 'steer' OR turn_id IS NOT NULL)
);
CREATE INDEX inputs_queue ON inputs (session_id, promoted, place);
CREATE INDEX inputs_waiting ON inputs (session_id) WHERE waiting IS NOT NULL;
CREATE UNIQUE INDEX inputs_message ON inputs (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE turns (
    number {serial},
    id {key} NOT NULL UNIQUE,
    session_id {key} NOT NULL,
    input_id {key} NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'prompt' OR kind = 'task' OR kind = 'message' OR kind = 'completion'),
    message_id {key},
    state TEXT NOT NULL CHECK (
        state = 'running' OR state = 'completed' OR state = 'failed' OR state = 'cancelled'
        OR state = 'interrupted'),
    host_id {key} NOT NULL,
    epoch {int} NOT NULL,
    permission TEXT NOT NULL CHECK (permission = 'ask' OR permission = 'accept-edits' OR permission = 'auto'),
    chain_id {key} NOT NULL,
    hops {int} NOT NULL,
    fenced {int} NOT NULL,
    created_at {int} NOT NULL,
    ended_at {int},
    result TEXT,
    truncated {int} NOT NULL,
    error_code TEXT,
    error TEXT,
    input_tokens {int},
    output_tokens {int},
    cost {int},
    news {int} NOT NULL,
    more_chains TEXT NOT NULL
);
CREATE INDEX turns_session ON turns (session_id, number);
CREATE UNIQUE INDEX turns_prompt ON turns (input_id) WHERE kind = 'prompt';
CREATE UNIQUE INDEX turns_one_runner ON turns (session_id) WHERE state = 'running';

CREATE TABLE items (
    session_id {key} NOT NULL,
    number {int} NOT NULL,
    turn_id {key} NOT NULL,
    kind TEXT NOT NULL,
    ref {key},
    diff TEXT,
    body TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (session_id, number)
) {clustered};
CREATE INDEX items_checkpoint ON items (session_id, number) WHERE kind = 'checkpoint';
CREATE INDEX items_ref ON items (ref, session_id) WHERE ref IS NOT NULL;

CREATE TABLE changes (
    number {position},
    session_id {key} NOT NULL,
    revision {int} NOT NULL,
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,
    at {int} NOT NULL
);
CREATE UNIQUE INDEX changes_session ON changes (session_id, revision);

CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    ref TEXT NOT NULL,
    kept_until {int},
    PRIMARY KEY (scope, key)
) {clustered};
CREATE INDEX idempotency_old ON idempotency (kept_until) WHERE kept_until IS NOT NULL;

CREATE TABLE audit (
    number {serial},
    at {int} NOT NULL,
    actor TEXT NOT NULL,
    act TEXT NOT NULL,
    session_id {key},
    ref TEXT NOT NULL
);

CREATE TABLE permission_requests (
    number {serial},
    id {key} NOT NULL UNIQUE,
    source_session_id {key} NOT NULL,
    target_session_id {key} NOT NULL,
    created_at {int} NOT NULL
);
CREATE UNIQUE INDEX permission_requests_pair ON permission_requests (source_session_id, target_session_id);
CREATE INDEX permission_requests_target ON permission_requests (target_session_id);

CREATE TABLE grants (
    number {serial},
    id {key} NOT NULL UNIQUE,
    source_session_id {key} NOT NULL,
    target_session_id {key} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
);
CREATE UNIQUE INDEX grants_pair ON grants (source_session_id, target_session_id);
CREATE INDEX grants_target ON grants (target_session_id);

CREATE TABLE call_requests (
    number {serial},
    id {key} NOT NULL UNIQUE,
    session_id {key} NOT NULL,
    turn_id {key} NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    risk TEXT NOT NULL CHECK (risk = 'low' OR risk = 'edit' OR risk = 'high'),
    subject TEXT NOT NULL,
    shown TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode = 'ask' OR mode = 'accept-edits' OR mode = 'auto'),
    clamped_by {key},
    created_at {int} NOT NULL,
    answer TEXT CHECK (answer = 'once' OR answer = 'session' OR answer = 'deny' OR answer = 'said'),
    note TEXT NOT NULL,
    answered_at {int},
    choices TEXT
);
CREATE UNIQUE INDEX call_requests_call ON call_requests (turn_id, call_id);
CREATE INDEX call_requests_session ON call_requests (session_id);

CREATE TABLE call_grants (
    number {serial},
    id {key} NOT NULL UNIQUE,
    session_id {key} NOT NULL,
    tool TEXT NOT NULL,
    subject_hash TEXT NOT NULL,
    subject TEXT NOT NULL,
    created_at {int} NOT NULL
);
CREATE UNIQUE INDEX call_grants_call ON call_grants (session_id, tool, subject_hash);

CREATE TABLE acceptances (
    message_id {key} NOT NULL PRIMARY KEY,
    session_id {key} NOT NULL,
    note TEXT NOT NULL,
    created_at {int} NOT NULL
) {clustered};
