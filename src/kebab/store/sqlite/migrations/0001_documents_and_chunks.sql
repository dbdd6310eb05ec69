CREATE TABLE migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL
);

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sources (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    root        TEXT UNIQUE,
    trust_level TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    ingested_at TEXT
);

CREATE TABLE documents (
    id              INTEGER PRIMARY KEY,
    doc_id          TEXT NOT NULL UNIQUE,
    source_id       INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    path            TEXT NOT NULL,
    title           TEXT NOT NULL,
    doc_type        TEXT NOT NULL,
    format          TEXT NOT NULL,
    lang            TEXT NOT NULL,
    trust_level     TEXT NOT NULL,
    date            TEXT NOT NULL,  -- from the front matter, else the time of modification
    size            INTEGER NOT NULL,
    mtime_ns        INTEGER,        -- NULL when the file was so young that its time proves nothing
    content_hash    TEXT NOT NULL,  -- of the file's bytes
    encoding        TEXT NOT NULL,
    line_count      INTEGER NOT NULL,
    chunk_count     INTEGER NOT NULL,
    metadata        TEXT NOT NULL,  -- the front matter as JSON, unknown keys included
    fingerprint     TEXT NOT NULL,  -- of the parser, the chunker and the settings that shape chunks
    chunker_version TEXT NOT NULL,
    indexed_at      TEXT NOT NULL,
    body            BLOB NOT NULL,  -- the text as it was decoded, compressed; last, so that other columns stay close
    UNIQUE (source_id, path)
);

CREATE TABLE document_tags (
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    tag         TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (tag, document_id)
) WITHOUT ROWID;

CREATE INDEX document_tags_by_document ON document_tags (document_id);

CREATE TABLE chunks (
    id            INTEGER PRIMARY KEY,
    chunk_id      TEXT NOT NULL UNIQUE,
    doc_id        TEXT NOT NULL,
    document_id   INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal       INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    start_offset  INTEGER NOT NULL,
    end_offset    INTEGER NOT NULL,
    source_spans  TEXT NOT NULL,   -- JSON [[kind, …], …]; the first one covers the chunk
    headings      TEXT,            -- JSON, only where a heading itself contains " > "
    section_label TEXT,
    heading_path  TEXT NOT NULL,   -- "A > B"
    text          TEXT NOT NULL,
    title         TEXT NOT NULL,   -- the document's; the first chunk also carries tags and aliases
    cjk           TEXT NOT NULL    -- terms of Chinese, Japanese and Korean text
);

CREATE INDEX chunks_by_document ON chunks (document_id, ordinal);

-- Unstemmed words and their stems, to widen a half-typed word. Grows only; rebuilt with the FTS index.
CREATE TABLE words (
    word TEXT PRIMARY KEY,
    stem TEXT NOT NULL
) WITHOUT ROWID;
