// docs/reference/protocol-matrix.md, from the results that the tests of test/dialects compute and compare.

import { readFileSync } from 'node:fs'
import { clients } from '../test/dialects/clients/list.ts'
import type { FeatureName } from '../test/dialects/features.ts'
import { featureNames } from '../test/dialects/features.ts'
import type { Results } from '../test/dialects/results.ts'
import { resultsPath } from '../test/dialects/results.ts'
import type { Dialect } from '../test/dialects/upstreams.ts'
import { dialects } from '../test/dialects/upstreams.ts'

/** What each row tests. */
const tested: Readonly<Record<FeatureName, string>> = {
  'text': 'a plain answer, its end and its token counts',
  'stream': "event by event, and through the SDK's own collector",
  'tools': 'a tool call with arguments; this and all rows below plain, streamed and collected',
  'parallel tools': 'two tool calls at once, in order, with ids of their own',
  'tool results': 'call, result, answer: the whole loop',
  'image': 'an inline image arrives byte for byte',
  'structured output': 'an answer that follows a JSON schema',
  'thinking': 'reasoning is shown and counted, and its state survives the tool loop',
  'cache': "prompt cache marks arrive; cached tokens are reported in the caller's terms",
  'errors': "each status raises the SDK's right class, with message and request id; also inside a stream",
  'abort': "the upstream's socket is closed, the call is settled, no hold stays open",
}

/** Why a loss cannot be avoided, by the upstream's dialect and the code of the loss. */
const reasons: Readonly<Partial<Record<Dialect, Readonly<Record<string, string>>>>> = {
  gemini: {
    cache_control: 'it has no cache marks: prompts are cached automatically, or stored before as a resource',
  },
  ark: {
    cache_control: 'its chat has no cache marks: prompts are cached automatically, or stored before as a context',
  },
}

export interface Loss {
  readonly to: Dialect
  readonly code: string
}

export function readResults(): Results {
  return JSON.parse(readFileSync(resultsPath, 'utf8')) as Results
}

/** Every loss in the results, once for each upstream dialect. */
export function lossesIn(results: Results): readonly Loss[] {
  const found = new Map<string, Loss>()
  for (const rows of Object.values(results)) {
    for (const to of dialects) {
      const told = Object.values(rows[to] ?? {}).flatMap(losses => (losses === 'fail' ? [] : losses))
      for (const code of told) found.set(`${to} ${code}`, { to, code })
    }
  }
  return [...found.values()].sort((a, b) => (a.to + a.code < b.to + b.code ? -1 : 1))
}

export const reasonFor = ({ to, code }: Loss): string | undefined => reasons[to]?.[code]

function cellText(losses: readonly string[] | 'fail' | undefined): string {
  if (losses === undefined || losses === 'fail') return '**fail**'
  return losses.length === 0 ? 'pass' : `loss: ${losses.map(code => `\`${code}\``).join(' ')}`
}

function section(from: Dialect, results: Results): string {
  const head = `| ${from} → | ${dialects.join(' | ')} |\n|---|${'---|'.repeat(dialects.length)}`
  const rows = featureNames.map(feature => {
    const cells = dialects.map(to => cellText(results[from]?.[to]?.[feature]))
    return `| ${feature} | ${cells.join(' | ')} |`
  })
  const sdks = clients.filter(client => client.dialect === from).map(client => client.name)
  return `## From ${from}\n\nSDKs: ${sdks.join(' · ')}.\n\n${head}\n${rows.join('\n')}\n`
}

/** The same as JSON, for the console. */
export function writeMatrixData(results: Results = readResults()): string {
  const data = {
    dialects,
    features: featureNames.map(name => ({ name, tests: tested[name] })),
    results,
    losses: lossesIn(results).map(loss => ({ ...loss, reason: reasonFor(loss) ?? null })),
  }
  return `${JSON.stringify(data, undefined, 1)}\n`
}

export function writeMatrix(results: Results = readResults()): string {
  const losses = lossesIn(results).map(loss => `| ${loss.to} | \`${loss.code}\` | ${reasonFor(loss) ?? ''} |`)
  return `# Protocol matrix

Which features work between each pair of dialects. Every official SDK, with only its base URL changed, calls an upstream of
each dialect. This page is generated from results that \`test/dialects\` computes and compares (\`npm run docs\`).

Rows are what the caller does, columns the dialect of the upstream. *pass*: it works and nothing is lost. *loss*: it works
without the named part, which the caller reads in \`X-Weir-Loss\`; with \`X-Weir-Translate: strict\` the call is refused
instead. In the same dialect, bytes pass unchanged.

| Row | Tests |
|---|---|
${featureNames.map(feature => `| ${feature} | ${tested[feature]} |`).join('\n')}

${dialects.map(from => section(from, results)).join('\n')}
## Reasons for losses

Callers of Gemini have no cache marks, so their *cache* row tests the token counts only.

| Upstream | Code | Why it is lost |
|---|---|---|
${losses.join('\n')}
`
}
