-- Part of migration 1, in a file of its own because `kb index --rebuild-fts` runs it again.

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    chunk_id UNINDEXED,
    doc_id UNINDEXED,
    heading_path,
    text,
    title,
    cjk,
    content = 'chunks',
    content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Larger leaves than the 4050 bytes FTS5 would choose: many small commits then write less.
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('pgsz', 16000);

CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
    INSERT INTO chunks_fts (rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES (new.id, new.chunk_id, new.doc_id, new.heading_path, new.text, new.title, new.cjk);
END;

-- An external-content index forgets a row only when it is told the row's old values.
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
    INSERT INTO chunks_fts (chunks_fts, rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk);
END;

CREATE TRIGGER chunks_au AFTER UPDATE OF chunk_id, doc_id, heading_path, text, title, cjk ON chunks BEGIN
    INSERT INTO chunks_fts (chunks_fts, rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk);
    INSERT INTO chunks_fts (rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES (new.id, new.chunk_id, new.doc_id, new.heading_path, new.text, new.title, new.cjk);
END;
