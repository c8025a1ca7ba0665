-- Records in the order in which they were written, for whoever sums them up.
SELECT 1;
