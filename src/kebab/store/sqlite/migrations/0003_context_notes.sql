-- What people say about a source or a folder in it. Hits below carry it, and its words count as words of every chunk below: they
-- are part of chunks.cjk, and whoever changes a row here changes those in the same transaction.
CREATE TABLE context_notes (
    source_id INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    folder    TEXT NOT NULL,   -- as in documents.path, without a slash at its end; empty for the whole source
    text      TEXT NOT NULL,
    PRIMARY KEY (source_id, folder)
) WITHOUT ROWID;
