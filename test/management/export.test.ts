// A long list as a file: read no faster than it is received, and cut off visibly if it fails.

import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import type { Export, ExportPage } from '../../src/management/web/export.ts'
import { exportResponse } from '../../src/management/web/export.ts'
import { until } from '../support/gateway.ts'

const PAGES = 10_000
const rows = Array.from({ length: 100 }, (_, at) => ({ at, text: 'x'.repeat(600) }))

interface Served {
  readonly url: string
  readonly requested: { pages: number }
  /** The export has given its slot back: it has ended, or its reader has left. */
  isReleased(): boolean
  stop(): void
}

function serve(page: (after: string) => Promise<ExportPage>, more: Partial<Export> = {}): Served {
  const requested = { pages: 0 }
  const counted = (after: string): Promise<ExportPage> => {
    requested.pages++
    return page(after)
  }
  let isReleased = false
  const slot = { keepAlive() {}, check: async () => {}, release: () => void (isReleased = true), onLost() {} }
  const head = { format: 'ndjson', name: 'list', columns: ['at', 'text'], slot } as const
  const first: ExportPage = { rows, next: '1' }
  const fetch = (): Response => exportResponse({ ...head, first, page: counted, ...more })
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch })
  const url = `http://127.0.0.1:${server.port}/`
  return { url, requested, isReleased: () => isReleased, stop: () => void server.stop(true) }
}

const endless = async (after: string): Promise<ExportPage> => {
  const next = Number(after) + 1
  return { rows, next: next > PAGES ? null : String(next) }
}

test('an export waits for a reader who stops, and ends when the reader leaves', async () => {
  const served = serve(endless)
  const socket = connect(Number(new URL(served.url).port), '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  socket.pause()
  await until(() => served.requested.pages > 0, 'the export has started')
  // Until the buffers of both sockets are full.
  for (let before = -1; before !== served.requested.pages; ) {
    before = served.requested.pages
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  expect(served.requested.pages).toBeLessThan(PAGES / 10)
  socket.destroy()
  await until(served.isReleased, 'the export knows that its reader has left')
  const left = served.requested.pages
  await new Promise(resolve => setTimeout(resolve, 200))
  expect(served.requested.pages - left).toBeLessThan(10)
  served.stop()
})

test('an export that fails is cut off, and does not look complete', async () => {
  const faults: unknown[] = []
  const fails = async (): Promise<ExportPage> => {
    throw new Error('away')
  }
  const served = serve(fails, { onTrouble: fault => void faults.push(fault) })
  const read = fetch(served.url).then(response => response.text())
  expect(
    await read.then(
      () => 'whole',
      () => 'cut off',
    ),
  ).toBe('cut off')
  expect(faults).toHaveLength(1)
  served.stop()
})

test('an export of an empty list is a file with its columns', async () => {
  const served = serve(endless, { format: 'csv', first: { rows: [], next: null } })
  expect(await (await fetch(served.url)).text()).toBe('at,text\r\n')
  served.stop()
})
