// docs/reference/request-bodies.md, from the bounds on request bodies in the code.

import { bounds } from '../src/base/bounds.ts'
import type { BodyClass } from '../src/http/server/body-budget.ts'
import { buildBodyBudgetBounds } from '../src/http/server/body-budget.ts'
import { bodyRules } from '../src/http/server/body-rules.ts'
import { pathGroups } from '../src/server/endpoints.ts'

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

const sizeText = (bytes: number): string => {
  if (bytes >= GIB) return `${bytes / GIB} GiB`
  return bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`
}
const number = (count: number): string => count.toLocaleString('en-US')

const classes: Readonly<Record<BodyClass, { readonly auth: string; readonly who: string; readonly of: string }>> = {
  anonymous: { auth: 'nobody', who: 'nobody', of: 'of one network (IPv6: a /64)' },
  person: { auth: 'token', who: 'a person or a program, by a session token or service token', of: 'of one person' },
  caller: { auth: 'key', who: 'an account, by an API key', of: 'of one account, all its keys together' },
}

/** Prefixes under which bodies of this class are read. Strangers only sign in. */
function pathsOf(name: BodyClass): string {
  const own = pathGroups.filter(({ auth, prefix }) => auth === classes[name].auth && prefix !== '')
  const read = name === 'anonymous' ? own.filter(({ prefix }) => prefix === '/api/auth') : own
  return [...new Set(read.map(({ prefix }) => `\`${prefix}/*\``))].join(', ')
}

export function writeRequestBodies(): string {
  const roomy = buildBodyBudgetBounds(Number.MAX_SAFE_INTEGER)
  const names = Object.keys(classes) as BodyClass[]
  const row = (title: string, cell: (name: BodyClass) => string): string =>
    `| ${title} | ${names.map(cell).join(' | ')} |`
  const rows = [
    row('paths', pathsOf),
    row('who must be authenticated first', name => classes[name].who),
    row('size', name => sizeText(bodyRules[name].bytesMax)),
    row('compressed', name =>
      bodyRules[name].decodes
        ? `gzip, deflate, br, zstd: to ${sizeText(bounds.decodedBytesMin)} or ${bounds.decodedRatioMax} times its size`
        : 'no (415)',
    ),
    row('time to arrive', name => `${bodyRules[name].msMax / 1_000} s`),
    row(
      'pieces',
      name => `${number(bodyRules[name].readsMin)} of any size, and one more for each ${bounds.bodyReadBytesMin} bytes`,
    ),
    row('JSON depth', name => number(bodyRules[name].json.depthMax)),
    row('JSON values', name => number(bodyRules[name].json.valuesMax)),
    row('of these, arrays and objects', name => {
      const { containersMax, valuesMax } = bodyRules[name].json
      return number(containersMax ?? valuesMax)
    }),
    row('different field names', name => (name === 'caller' ? number(bounds.jsonNamesMax) : 'as many as values')),
    row('bytes of a field name', name =>
      name === 'caller' ? `${number(bounds.jsonNameBytesMax)}, in a large body` : 'any',
    ),
    row(
      'arriving at once, each',
      name => `${number(roomy[name].ownBodiesMax)} and ${sizeText(roomy[name].ownBytesMax)} ${classes[name].of}`,
    ),
    row('arriving at once, in all', name => {
      return `${number(roomy[name].bodiesMax)} and ${sizeText(roomy[name].bytesMax)}`
    }),
    row('decompressed at once', name =>
      bodyRules[name].decodes ? `${bounds.decodingsMax}, ${bounds.decodingsOfAccountMax} of one account` : 'none',
    ),
  ]
  return `# Request bodies

How large, deep, slow and many request bodies may be, by who sends them. This page is generated from the bounds in the code
(\`npm run docs\`). Other requests have no body, or one that is not read.

| | anonymous requests | signed-in people | callers |
|---|---|---|---|
${rows.join('\n')}

- **Authentication comes first.** Only under \`/api/auth\` a body is read from an anonymous client, and there it must be short,
  uncompressed and fast.
- **A key without a call left is refused unread** (429). A refused body counts as one call of its key
  ([limits](../how-it-works/limits.md)).
- **Arriving bodies** are held in memory as far as they have come; an announced length reserves nothing. Each class has its
  own budget, so anonymous clients take nothing from callers. Callers have at most a quarter of the memory of Weir
  (\`WEIR_MEMORY_MB\`), and at least ${sizeText(2 * bounds.bodyBytesMax)}. When a budget is used up, the body that has waited
  longest for its next byte is refused, of the owner with the most bytes: 429 \`concurrency_exceeded\` beyond one's own
  budget, 503 \`overloaded\` beyond that of all (\`weir_request_bodies_refused_total\`). A body that arrives together with
  its head is always read.
- **Small pieces** (chunks or packets) cost a read each. A body with more pieces than the table allows is refused with 400
  \`body_in_pieces\`, and its connection is closed. HTTP libraries send pieces of 1,000 bytes and more. Pieces below 4 KiB
  are joined, and their memory overhead counts. After the first pieces, other requests have their turn after every
  ${bounds.bodyReadsAtOnceMax} pieces.
- **A compressed body** may become ${sizeText(bounds.decodedBytesMin)}, or ${bounds.decodedRatioMax} times its size if that is more, but
  never more than ${sizeText(bounds.bodyBytesMax)}. Prompts compress to about a tenth, very monotonous ones to a fiftieth. It is
  decompressed outside the thread that serves calls. One that becomes larger than ${sizeText(bounds.promptBytesMax)} waits for a thread of its own,
  which rests as the second one below; small ones do not wait for it. One that waits longer than ${bounds.bodyWorkerMsMax / 1_000} s gets 503.
- **A body above ${sizeText(bounds.smallBodyBytesMax)}** is checked and parsed in a thread of its own, one at a time, account after
  account: JSON, references, forms, and the duration of audio in them. The remaining work in the main thread is estimated,
  and the account's next large body waits nine times as long. So one account gets at most a tenth of the main thread for
  its large bodies, and all together a third. A body that waits longer than ${bounds.bodyWorkerMsMax / 1_000} s gets 503.
- **A body above ${sizeText(bounds.promptBytesMax)}, or with very many values,** has another such thread, so that long prompts do not wait for
  it. That thread has a low priority and rests three times as long as it has worked; eight times on a machine with one
  core, where other calls are slower meanwhile. One account gets a twentieth of the main thread for these, all together a
  sixth.
- **A message of a [WebSocket](../guides/websocket.md#bounds)** has the bounds of a caller's body, but for compression, time
  and pieces: it cannot be compressed, and it is in the budget when it has arrived whole.
- **A body that is refused unread** is discarded as it arrives. Its connection is closed 10 to 30 seconds after the answer,
  however many bytes still come.
`
}
