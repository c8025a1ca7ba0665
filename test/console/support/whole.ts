/** `WEIR_TEST_ALL=1`: tests that take minutes are run whole. `npm test` runs the part that finds most. */
export const isWhole = process.env.WEIR_TEST_ALL === '1'
