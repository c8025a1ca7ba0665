-- Which secret was used for what.
SELECT 1;
