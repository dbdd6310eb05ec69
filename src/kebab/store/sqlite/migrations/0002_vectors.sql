-- One row per model and version that ever made vectors here. Vectors of two spaces are never compared.
CREATE TABLE embedding_spaces (
    id         INTEGER PRIMARY KEY,
    model      TEXT NOT NULL,
    version    TEXT NOT NULL,
    dimension  INTEGER NOT NULL,
    centre     BLOB,           -- float32; what the bit codes are taken around. Fixed when the first codes are made
    created_at TEXT NOT NULL,
    UNIQUE (model, version, dimension)
);

-- A text is embedded once: a vector belongs to the hash of what was embedded, not to a chunk. What no chunk refers to any more
-- stays for a while, so that a renamed or re-chunked file finds its vectors again.
CREATE TABLE vectors (
    id        INTEGER PRIMARY KEY,
    space_id  INTEGER NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
    text_hash BLOB NOT NULL,   -- first 16 bytes of the sha256 of the embedded text
    vector    BLOB NOT NULL,   -- float16, of length 1
    UNIQUE (space_id, text_hash)
);

CREATE TABLE chunks_vec (
    chunk     INTEGER NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    space_id  INTEGER NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
    vector_id INTEGER NOT NULL REFERENCES vectors (id) ON DELETE CASCADE,
    home      INTEGER NOT NULL,  -- 1 in the space that suits the chunk's own script, 0 in one it enters for other languages' questions
    PRIMARY KEY (chunk, space_id)
) WITHOUT ROWID;

CREATE INDEX chunks_vec_by_vector ON chunks_vec (vector_id);

-- One bit per dimension, for the first look at many vectors. A row is never changed; small ones are merged into larger ones.
-- Ids are never used again, so that a reader can tell by them whether what it remembers is current.
CREATE TABLE vector_codes (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    space_id INTEGER NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
    count    INTEGER NOT NULL,
    ids      BLOB NOT NULL,    -- int64, ids of vectors
    planes   BLOB NOT NULL     -- uint64, one plane per 64 dimensions
);

CREATE INDEX vector_codes_by_space ON vector_codes (space_id, id);

-- What is embedded is made of these columns: another text needs another vector.
CREATE TRIGGER chunks_vec_au AFTER UPDATE OF heading_path, headings, text, title ON chunks
WHEN (old.heading_path, old.headings, old.text, old.title) IS NOT (new.heading_path, new.headings, new.text, new.title)
BEGIN
    DELETE FROM chunks_vec WHERE chunk = old.id;
END;
