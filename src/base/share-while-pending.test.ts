import { expect, test } from 'bun:test'
import { shareWhilePending } from './share-while-pending.ts'

test('callers share a pending run, and a later caller gets a new one, also after a failure', async () => {
  const runs: PromiseWithResolvers<string>[] = []
  const read = shareWhilePending(() => {
    runs.push(Promise.withResolvers<string>())
    return runs.at(-1)!.promise
  })
  const [one, two] = [read(), read()]
  expect(runs).toHaveLength(1)
  runs[0]!.resolve('first')
  expect([await one, await two]).toEqual(['first', 'first'])
  const failing = [read(), read()]
  expect(runs).toHaveLength(2)
  runs[1]!.reject(new Error('away'))
  expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const third = read()
  runs[2]!.resolve('third')
  expect(await third).toBe('third')
})
