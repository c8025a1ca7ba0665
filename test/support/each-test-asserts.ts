// Loaded before all tests (bunfig.toml): a test that ends without having called expect() fails. It would pass whatever
// the code does, for example because of an early return or a list that is empty.

import { beforeEach, expect } from 'bun:test'

beforeEach(() => {
  expect.hasAssertions()
})
