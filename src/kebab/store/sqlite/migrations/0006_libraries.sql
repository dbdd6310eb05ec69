-- Documentation of libraries. A library has versions, a version is a set of documents, and versions share the documents they have in
-- common. Chunks of such documents have ids below zero, each library in a stretch of its own: see library_chunks.py.
CREATE TABLE libraries (
    id          INTEGER PRIMARY KEY,
    library_id  TEXT NOT NULL UNIQUE,   -- /owner/project
    title       TEXT NOT NULL,
    description TEXT NOT NULL,
    titled      INTEGER NOT NULL,       -- whether the user said so, rather than its own files
    described   INTEGER NOT NULL,
    origin      TEXT NOT NULL,          -- a url, or a path on this machine
    origin_kind TEXT NOT NULL,          -- git, folder, file, archive, export
    repository  TEXT,                   -- the address of the git repository the text comes from, without a password
    branch      TEXT,                   -- asked for instead of the default one
    stars       INTEGER,
    trust_score REAL,                   -- 0 to 10; NULL before it was first indexed
    rules       TEXT NOT NULL,          -- JSON, a list of sentences
    created_at  TEXT NOT NULL
);

-- While a version is indexed anew it has two rows: the one that is searched, and the one that is being made and will replace it.
CREATE TABLE library_versions (
    id         INTEGER PRIMARY KEY,
    library    INTEGER NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
    tag        TEXT NOT NULL,           -- empty for the default branch
    in_making  INTEGER NOT NULL,
    source_id  INTEGER NOT NULL REFERENCES sources (id),
    commit_id  TEXT,
    error      TEXT,                    -- why the last attempt failed
    state      TEXT NOT NULL,           -- pending, indexing, indexed, failed
    snippets   INTEGER NOT NULL DEFAULT 0,
    indexed_at TEXT,
    UNIQUE (library, tag, in_making)
);

CREATE TABLE library_documents (
    version     INTEGER NOT NULL REFERENCES library_versions (id) ON DELETE CASCADE,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    file_key    TEXT NOT NULL,          -- the same for the same bytes, known without reading them
    PRIMARY KEY (version, document_id)
) WITHOUT ROWID;

CREATE INDEX library_documents_by_document ON library_documents (document_id);
CREATE INDEX code_of_libraries ON chunks (id) WHERE kind = 'code' AND id < 0;
