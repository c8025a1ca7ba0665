-- Calls whose cost the funds may not cover are now shortened by default. A key can refuse them instead.
ALTER TABLE api_key RENAME COLUMN clamps TO strict_cap;
UPDATE api_key SET strict_cap = 0 WHERE strict_cap = 1;
