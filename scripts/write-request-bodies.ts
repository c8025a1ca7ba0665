// docs/reference/request-bodies.md, from the tables that the reading of bodies goes by.

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
  stranger: { auth: 'nobody', who: 'nobody', of: 'of one network (IPv6: a /64)' },
  person: { auth: 'token', who: 'a person, by a management token', of: 'of one person' },
  caller: { auth: 'key', who: 'an account, by an API key', of: 'of one account, all its keys together' },
}

/** Prefixes under which bodies are read for this class. Only signing in is for strangers. */
function pathsOf(name: BodyClass): string {
  const own = pathGroups.filter(({ auth, prefix }) => auth === classes[name].auth && prefix !== '')
  const read = name === 'stranger' ? own.filter(({ prefix }) => prefix === '/api/auth') : own
  return [...new Set(read.map(({ prefix }) => `\`${prefix}/*\``))].join(', ')
}

export function writeRequestBodies(): string {
  const roomy = buildBodyBudgetBounds(Number.MAX_SAFE_INTEGER)
  const names = Object.keys(classes) as BodyClass[]
  const row = (title: string, cell: (name: BodyClass) => string): string =>
    `| ${title} | ${names.map(cell).join(' | ')} |`
  const rows = [
    row('paths', pathsOf),
    row('who must be known before it is read', name => classes[name].who),
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
    row('levels of JSON', name => number(bodyRules[name].json.depthMax)),
    row('values', name => number(bodyRules[name].json.valuesMax)),
    row('lists and objects among them', name => {
      const { containersMax, valuesMax } = bodyRules[name].json
      return number(containersMax ?? valuesMax)
    }),
    row('different names of fields', name => (name === 'caller' ? number(bounds.jsonNamesMax) : 'as many as values')),
    row('bytes of each', name => (name === 'caller' ? `${number(bounds.jsonNameBytesMax)}, in a large body` : 'any')),
    row(
      'on their way at once, each',
      name => `${number(roomy[name].ownBodiesMax)} and ${sizeText(roomy[name].ownBytesMax)} ${classes[name].of}`,
    ),
    row('on their way at once, in all', name => {
      return `${number(roomy[name].bodiesMax)} and ${sizeText(roomy[name].bytesMax)}`
    }),
    row('decoded at once', name =>
      bodyRules[name].decodes ? `${bounds.decodingsMax}, ${bounds.decodingsOfAccountMax} of one account` : 'none',
    ),
  ]
  return `# Request bodies

What a body may be, by who sends it. This page is generated from the tables that the reading goes by (\`npm run docs\`).
Everything else that Weir answers has no body, or one that is not read.

| | strangers | people who are signed in | callers |
|---|---|---|---|
${rows.join('\n')}

- **Nobody's body is read before it is known who they are**, but under \`/api/auth\`, where that is what the body says.
  There it is short, plain and soon there, and costs next to nothing until it is.
- **A key that has no call left is refused unread** (429). A body that is refused is one of its key's calls
  ([limits](../how-it-works/limits.md)).
- **Bodies that are on their way** are held in memory, as far as they have come. Each class has its own room: what
  strangers send takes nothing from callers. Callers have at most a quarter of the memory that Weir may take
  (\`WEIR_MEMORY_MB\`), and at least ${sizeText(2 * bounds.bodyBytesMax)}. When there is no room, the newest body
  is not the one that is refused: the one that has waited longest for its next byte is given up, of whoever has the
  most on its way (429 \`concurrency_exceeded\` beyond one's own room, 503 \`overloaded\` beyond that of all;
  \`weir_request_bodies_given_up_total\`). A body that comes together with its head is always read.
- **A body that comes in small pieces** (chunks of \`Transfer-Encoding: chunked\`, or packets) costs Weir a read for
  each, which takes more time than a few bytes are worth. A body with more pieces than the table allows is refused
  with 400 \`body_in_pieces\` as soon as it has them, and its connection is closed. HTTP libraries send pieces of
  1,000 bytes and more. Pieces below 4 KiB are put together as they come, and the memory that they take beside their
  bytes counts as on its way. Beyond the first ones, others have their turn after every
  ${bounds.bodyReadsAtOnceMax} pieces.
- **A compressed body** may become ${sizeText(bounds.decodedBytesMin)}, whatever its size,
  and ${bounds.decodedRatioMax} times its size beyond that, but never more than ${sizeText(bounds.bodyBytesMax)}.
  Prompts compress to about a tenth, very monotonous ones to a fiftieth; what compresses further was made to cost more
  here than where it came from. It is decoded beside the thread that serves calls.
- **A body above ${sizeText(bounds.smallBodyBytesMax)}** is looked at and parsed in a thread of its own, one at a
  time, account after account: JSON, what it names of what is kept at an upstream, forms, and how long the sounds in
  them last. What the thread that serves calls still has to do for it is estimated by what was
  counted, and its account's next large body waits for nine times as long: so no account has more than a tenth of that
  thread for its large bodies, and all together have at most half. Whoever waits longer than
  ${bounds.bodyWorkerMsMax / 1_000} s gets 503.
- Numbers of any length, names of any length and texts full of escapes are read in time by their length.
- An announced length reserves no memory; only bytes that have come do.
- **What is refused unread** is thrown away as it comes. Its connection is closed 10 to 30 seconds after the answer,
  however many bytes still come: they do not prolong that.
`
}
