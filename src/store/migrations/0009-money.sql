-- Webhooks and what they are told.
SELECT 1;
