-- A question in one script looks at the vectors of its own script and at those of the others apart. Where one of them are few among many,
-- they are listed instead of looked for.
CREATE INDEX chunks_vec_by_space ON chunks_vec (space_id, home, vector_id);
CREATE INDEX chunks_with_cjk ON chunks (id) WHERE cjk <> '' AND kind <> 'code';
