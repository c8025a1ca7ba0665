// The operator's own prices: checked like those of a provider file, written as new versions, then announced.

import { expect, test } from 'bun:test'
import type { PriceRow } from '../../billing/price-book.ts'
import type { OperatorParts } from '../command.ts'
import { priceCommands } from './prices.ts'

function desk() {
  const written: unknown[] = []
  const told: PriceRow[] = []
  const run = (...args: readonly unknown[]): Promise<never> => {
    written.push(args)
    return Promise.resolve({ done: 'added', versions: [640] } as never)
  }
  const books = { prices: () => [{ origin: 'operator' }] }
  const onPriceAdded = (row: PriceRow): void => void told.push(row)
  const open = { name: 'Open', openModels: true, models: new Map() }
  const catalogue = () => ({
    providers: new Map([
      ['openai', open],
      ['a', open],
    ]),
  })
  const running = () => ({})
  const parts = { writer: { run }, books, onPriceAdded, catalogue, liveGateway: running }
  const commands = priceCommands(parts as unknown as OperatorParts)
  return { written, told, set: commands['prices-set']!, withdraw: commands['prices-withdraw']! }
}

test('a price of the operator is a new version', async () => {
  const { written, told, set } = desk()
  const price = '{"input":"1.00","output":"2.50"}'
  const row = { model: 'openai/gpt-x', origin: 'operator', price, author: 'ann' } as const
  expect(await set({ model: 'openai/gpt-x', price: '{"output":"2.5","input":"1"}', author: 'ann' })).toEqual({
    model: 'openai/gpt-x',
    version: 640,
    price: JSON.parse(price),
  })
  expect(written).toEqual([['addPrices', { prices: [row] }, { actor: 'cli' }]])
  expect(told).toEqual([{ ...row, version: 640 }])
  await set({ model: 'a/b/c', price: { input: '1', output: '2' } })
  expect(told[1]).toMatchObject({ model: 'a/b/c', author: 'operator' })
})

test('withdrawing a price is a new version, too', async () => {
  const { told, withdraw } = desk()
  expect(await withdraw({ model: 'openai/gpt-x' })).toMatchObject({ state: 'as shipped' })
  expect(told).toEqual([{ version: 640, model: 'openai/gpt-x', origin: 'withdrawn', price: '', author: 'operator' }])
})

const bad: readonly (readonly [name: string, input: Record<string, unknown>, says: string])[] = [
  ['no model', { price: '{"input":"1","output":"2"}' }, '<provider>/<model>'],
  ['half a model', { model: 'gpt-x', price: '{"input":"1","output":"2"}' }, '<provider>/<model>'],
  ['no price', { model: 'a/b' }, 'must be an object'],
  ['no JSON', { model: 'a/b', price: '{' }, 'not valid JSON'],
  ['a float', { model: 'a/b', price: '{"input":1.5,"output":"2"}' }, '"price.input" must be'],
  ['a negative', { model: 'a/b', price: '{"input":"-1","output":"2"}' }, '"price.input" must be'],
  ['a misspelt rate', { model: 'a/b', price: '{"input":"1","output":"2","cached":"1"}' }, 'unknown field "cached"'],
  ['nothing', { model: 'a/b', price: '{"input":"0","output":"0"}' }, 'needs "free"'],
]

test.each(bad)('%s is refused, and nothing is written', async (_name, input, says) => {
  const { written, told, set } = desk()
  const fault = await set(input).catch((thrown: unknown) => thrown)
  expect((fault as Error).constructor.name).toBe('OperatorError')
  expect((fault as Error).message).toContain(says)
  expect([written, told]).toEqual([[], []])
})
