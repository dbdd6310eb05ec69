-- The text index, as every rebuild makes it. Documentation of libraries has one of its own: how rare a word is in other people's pages must
-- not change the order of one's own notes.

DROP TRIGGER IF EXISTS chunks_ai;
DROP TRIGGER IF EXISTS chunks_ad;
DROP TRIGGER IF EXISTS chunks_au;
DROP TRIGGER IF EXISTS library_ai;
DROP TRIGGER IF EXISTS library_ad;
DROP TRIGGER IF EXISTS library_au;
DROP TABLE IF EXISTS chunks_fts;
DROP TABLE IF EXISTS library_fts;
DROP VIEW IF EXISTS own_chunks;
DROP VIEW IF EXISTS library_chunks;

-- What each index is an index of: see library_chunks.py.
CREATE VIEW own_chunks AS SELECT id, chunk_id, doc_id, heading_path, text, title, cjk FROM chunks WHERE id >= 0;
CREATE VIEW library_chunks AS SELECT id, chunk_id, doc_id, heading_path, text, title, cjk FROM chunks WHERE id < 0;

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    chunk_id UNINDEXED,
    doc_id UNINDEXED,
    heading_path,
    text,
    title,
    cjk,
    content = 'own_chunks',
    content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Larger leaves than the 4050 bytes FTS5 would choose: many small commits then write less.
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('pgsz', 16000);

CREATE TRIGGER chunks_ai AFTER INSERT ON chunks WHEN new.id >= 0 BEGIN
    INSERT INTO chunks_fts (rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES (new.id, new.chunk_id, new.doc_id, new.heading_path, new.text, new.title, new.cjk);
END;

-- An external-content index forgets a row only when it is told the row's old values.
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks WHEN old.id >= 0 BEGIN
    INSERT INTO chunks_fts (chunks_fts, rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk);
END;

CREATE TRIGGER chunks_au AFTER UPDATE OF chunk_id, doc_id, heading_path, text, title, cjk ON chunks WHEN old.id >= 0 BEGIN
    INSERT INTO chunks_fts (chunks_fts, rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk);
    INSERT INTO chunks_fts (rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES (new.id, new.chunk_id, new.doc_id, new.heading_path, new.text, new.title, new.cjk);
END;

CREATE VIRTUAL TABLE library_fts USING fts5 (
    chunk_id UNINDEXED,
    doc_id UNINDEXED,
    heading_path,
    text,
    title,
    cjk,
    content = 'library_chunks',
    content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Larger leaves than the 4050 bytes FTS5 would choose: many small commits then write less.
INSERT INTO library_fts (library_fts, rank) VALUES ('pgsz', 16000);

CREATE TRIGGER library_ai AFTER INSERT ON chunks WHEN new.id < 0 BEGIN
    INSERT INTO library_fts (rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES (new.id, new.chunk_id, new.doc_id, new.heading_path, new.text, new.title, new.cjk);
END;

-- An external-content index forgets a row only when it is told the row's old values.
CREATE TRIGGER library_ad AFTER DELETE ON chunks WHEN old.id < 0 BEGIN
    INSERT INTO library_fts (library_fts, rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk);
END;

CREATE TRIGGER library_au AFTER UPDATE OF chunk_id, doc_id, heading_path, text, title, cjk ON chunks WHEN old.id < 0 BEGIN
    INSERT INTO library_fts (library_fts, rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk);
    INSERT INTO library_fts (rowid, chunk_id, doc_id, heading_path, text, title, cjk)
    VALUES (new.id, new.chunk_id, new.doc_id, new.heading_path, new.text, new.title, new.cjk);
END;

INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild');
INSERT INTO library_fts (library_fts) VALUES ('rebuild');
