// Loaded before all tests (bunfig.toml): a test that ends without having called expect() fails. It would pass whatever
// the code does, for example because of an early return or a list that is empty.

import { afterAll, beforeEach, expect } from 'bun:test'

beforeEach(() => {
  expect.hasAssertions()
})

if (process.env.WEIR_TEST_DATABASE === 'postgres') {
  afterAll(async () => {
    const { stopHarnessDatabases } = await import('./harness-databases.ts')
    await stopHarnessDatabases()
  })
}
