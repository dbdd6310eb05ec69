-- 0001 and 0006 were edited after databases had been made with them: some have an index that is no longer used, some of version 6 lack two
-- columns of `libraries` and the text index of libraries. This step and the text index after it make all of them alike.
DROP INDEX IF EXISTS chunk_owners;

-- A column that the inner table lacks is looked up in the outer query, so `unset` only counts where there is no such column.
CREATE TEMP TABLE kept AS
SELECT l.id, l.library_id, l.title, l.description,
       (SELECT titled FROM libraries own WHERE own.id = l.id) AS titled,
       (SELECT described FROM libraries own WHERE own.id = l.id) AS described,
       l.origin, l.origin_kind, l.repository, l.branch, l.stars, l.trust_score, l.rules, l.created_at
FROM libraries l, (SELECT 0 AS titled, 0 AS described) unset;

DROP TABLE libraries;

CREATE TABLE libraries (
    id          INTEGER PRIMARY KEY,
    library_id  TEXT NOT NULL UNIQUE,   -- /owner/project
    title       TEXT NOT NULL,
    description TEXT NOT NULL,
    titled      INTEGER NOT NULL,       -- whether the user gave the title; otherwise it is from the library's files
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

INSERT INTO libraries SELECT * FROM kept;
DROP TABLE kept;
