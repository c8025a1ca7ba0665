-- How a person wants the console to look: a small JSON object.
ALTER TABLE person ADD COLUMN preferences TEXT;
DROP TRIGGER person_version;
CREATE TRIGGER person_version AFTER UPDATE OF email, name, role, disabled, removed_ms, preferences ON person BEGIN
  UPDATE person SET version = old.version + 1 WHERE id = new.id;
END;
