// docs/reference/protocol-matrix.md, out of the results that the suite of test/dialects computes and compares.

import { readFileSync } from 'node:fs'
import { clients } from '../test/dialects/clients/list.ts'
import type { FeatureName } from '../test/dialects/features.ts'
import { featureNames } from '../test/dialects/features.ts'
import type { Results } from '../test/dialects/results.ts'
import { resultsPath } from '../test/dialects/results.ts'
import type { Dialect } from '../test/dialects/upstreams.ts'
import { dialects } from '../test/dialects/upstreams.ts'

/** What each column proves. */
const proves: Readonly<Record<FeatureName, string>> = {
  'text': 'a plain answer, its end and its counts',
  'stream': "event by event, and through the SDK's own collector",
  'tools': 'a call with arguments; this and all that follow plain, streamed and collected',
  'parallel tools': 'two calls at once, in order, with ids of their own',
  'tool results': 'call, result, answer: the whole loop',
  'image': 'an inline picture arrives byte for byte',
  'structured output': 'an answer held to a JSON schema',
  'thinking': 'thoughts are shown and counted, and their state survives the loop of tools',
  'cache': "marks of the prompt cache arrive; cached tokens are told in the caller's own sense",
  'errors': "each status raises the SDK's right class, with message and request id; also inside a stream",
  'abort': "the upstream's socket is closed, the call settled, no hold left open",
}

/** Why what is lost cannot be carried, by the upstream's dialect and the code. */
const reasons: Readonly<Partial<Record<Dialect, Readonly<Record<string, string>>>>> = {
  gemini: {
    cache_control: 'it has no marks: prompts are cached by themselves, or kept beforehand as a resource of their own',
  },
  ark: {
    cache_control: 'its chat has no marks: prompts are cached by themselves, or kept beforehand as a context',
  },
}

export interface Loss {
  readonly to: Dialect
  readonly code: string
}

export function readResults(): Results {
  return JSON.parse(readFileSync(resultsPath, 'utf8')) as Results
}

/** Every loss of the table, once for each upstream dialect. */
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
  return losses.length === 0 ? 'pass' : `said loss: ${losses.map(code => `\`${code}\``).join(' ')}`
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

export function writeMatrix(results: Results = readResults()): string {
  const losses = lossesIn(results).map(loss => `| ${loss.to} | \`${loss.code}\` | ${reasonFor(loss) ?? ''} |`)
  return `# Which dialect can do what on which upstream

Every official SDK, changed in nothing but its base URL, against an upstream of each dialect (this page is generated:
\`npm run docs\`, from results that \`test/dialects\` computes anew and compares). Rows are what the caller does; the
columns are the dialect of the upstream. *Pass* is that it works and nothing was lost; *said loss* names what the
upstream could not be told, as the caller reads it in \`X-Weir-Loss\` (\`X-Weir-Translate: strict\` refuses such a
call instead). A dialect on itself is passed on byte for byte.

| Row | Proves |
|---|---|
${featureNames.map(feature => `| ${feature} | ${proves[feature]} |`).join('\n')}

${dialects.map(from => section(from, results)).join('\n')}
## Why a loss is one

Callers of Gemini have no marks to set, so that in their column of *cache* only the counts are proved.

| Upstream | Code | Why it cannot be carried |
|---|---|---|
${losses.join('\n')}
`
}
