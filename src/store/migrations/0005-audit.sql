-- The audit log, and versions of what can be edited.
SELECT 1;
