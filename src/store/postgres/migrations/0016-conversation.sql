-- Which conversation a call is a turn of. What it means is said in the migration of SQLite.
ALTER TABLE record ADD COLUMN conversation TEXT COLLATE "C";
