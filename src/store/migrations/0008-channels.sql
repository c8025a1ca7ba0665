-- Providers and channels that an operator lays down while calls go on.
SELECT 1;
