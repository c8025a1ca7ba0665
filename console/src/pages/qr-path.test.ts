import { expect, test } from 'bun:test'
import { qrPath } from './qr-path.ts'

test('each run of dark modules is one rectangle', () => {
  expect(
    qrPath([
      [true, true, false, true],
      [false, false, false, false],
      [false, true, true, true],
    ]),
  ).toBe('M0 0h2v1h-2zM3 0h1v1h-1zM1 2h3v1h-3z')
})

test('nothing dark is an empty path', () => {
  expect(qrPath([[false, false]])).toBe('')
})
