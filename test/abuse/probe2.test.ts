import { afterEach, test } from 'bun:test'
import { answer, fail } from '../../src/fake-upstream/answers.ts'
import { startShores, type Shores } from '../routing/shores.ts'

let shores: Shores
afterEach(() => shores.stop())

test('fallback group with a dead first', async () => {
  shores = await startShores()
  const key = await shores.key({ qpm: 100_000 })
  await shores.name('smart', 'near/echo then far/echo')
  shores.near.planModel('echo', fail(500))
  const counts: Record<string, number> = {}
  for (let round = 0; round < 20; round++) {
    const got = await Promise.all(Array.from({ length: 20 }, (_, at) => shores.ask(key, 'smart', { messages: [{ role: 'user', content: `q ${round} ${at}` }] })))
    for (const { status } of got) counts[status] = (counts[status] ?? 0) + 1
  }
  console.log('group', counts, 'near', shores.near.requests.length, 'far', shores.far.requests.length)
})
