// As much of curl as the printed command needs, for a machine without curl: curl -i <url> -H <header> … -d <body>.

import { parseArgs } from 'node:util'
import { rawRequest } from '../support/raw.ts'
import { ask } from './asking.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    include: { type: 'boolean', short: 'i' },
    header: { type: 'string', short: 'H', multiple: true },
    data: { type: 'string', short: 'd' },
  },
})

const { origin, pathname, search } = new URL(positionals[0]!)
const headers = Object.fromEntries((values.header ?? []).map(header => header.split(/:\s*/, 2)))
const answer = await rawRequest(origin, ask('POST', pathname + search, headers, values.data ?? ''))
const head = values.include ? Buffer.from(`${answer.head}\r\n\r\n`, 'latin1') : Buffer.alloc(0)
process.stdout.write(Buffer.concat([head, answer.body]))
