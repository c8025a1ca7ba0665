// Loaded before all tests (bunfig.toml): a test that ends without having called expect() fails. It would pass whatever
// the code does, for example because of an early return or a list that is empty.

import { afterAll, beforeEach, expect } from 'bun:test'
import { BUNDLES_VARIABLE, startThreadsFromBundles } from './thread-bundles.ts'

beforeEach(() => {
  expect.hasAssertions()
})

const bundles = process.env[BUNDLES_VARIABLE]
if (bundles !== undefined) startThreadsFromBundles(bundles)

if (process.env.WEIR_TEST_DATABASE === 'postgres') {
  afterAll(async () => {
    const { stopHarnessDatabases } = await import('./harness-databases.ts')
    await stopHarnessDatabases()
  })
}
