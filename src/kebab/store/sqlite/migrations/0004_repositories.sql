-- The git repository that the folder of a source belonged to when it was last ingested. Of its url only the name is kept.
ALTER TABLE sources ADD COLUMN repository TEXT;   -- NULL outside of any repository
ALTER TABLE sources ADD COLUMN branch TEXT;       -- NULL when no branch is checked out
ALTER TABLE sources ADD COLUMN commit_id TEXT;    -- NULL while there is no commit
