// docs/reference/failures.md, from the table of faults and from the expected results of the fault matrix.

import { errorRows } from '../src/base/errors.ts'
import { chargeRules, chargeText } from '../src/billing/who-pays.ts'
import { advice } from '../test/faults/advice.ts'
import type { Consequence, Verdict, VerdictName } from '../test/faults/verdicts.ts'
import { exceptions, usualVerdict, verdicts } from '../test/faults/verdicts.ts'
import { dialects as wires } from '../tools/fake-upstream/dialects.ts'
import type { FaultId } from '../tools/fake-upstream/fault-rows/kinds.ts'
import { faultIds, faultKinds } from '../tools/fake-upstream/fault-rows/kinds.ts'
import type { Fault } from '../tools/fake-upstream/faults.ts'
import { faultsIn } from '../tools/fake-upstream/faults.ts'

/** The title of each chapter, by its first fault. */
const chapters: Readonly<Partial<Record<FaultId, string>>> = {
  F1: 'Connection',
  F11: 'Timing',
  F16: 'HTTP',
  F23: 'Body',
  F28: 'Event streams',
  F33: 'Meaning',
}

const consequences: Readonly<Record<Consequence, readonly [name: string, meaning: string]>> = {
  nothing: ['unchanged', 'Nothing is counted against it.'],
  counted: [
    'breaker failure',
    'A failure for the circuit breaker. Five in a row, or half of at least twenty within ten seconds, open the breaker ' +
      'for about a second; then one call probes the channel, and each failed probe doubles the time, up to a minute. If ' +
      'the breakers of all channels are open, the channel that recovers next is tried.',
  ],
  closed: [
    'rate limited',
    'Skipped for as long as the provider asks, else for a second, doubled with each further refusal up to a minute.',
  ],
  spent: ['quota spent', 'The same, but for a minute, doubled up to an hour, with an error in the log.'],
  doubted: [
    'forbidden',
    'The credential or the request may be at fault. Five in a row, with nothing else between them, switch the channel off.',
  ],
  off: ['switched off', 'Skipped for five minutes, with an error in the log; then one call probes the channel.'],
}

/** The variants of a fault in all dialects, each once. */
function faultsOf(id: FaultId): readonly Fault[] {
  const all = wires.flatMap(dialect => faultsIn(dialect)).filter(fault => fault.id === id)
  return all.filter(({ name }, at) => all.findIndex(other => other.name === name) === at)
}

function seenText({ code, midway }: Verdict): string {
  if (code === null) return '200, the answer'
  if (midway) return `the content so far, then an error event: \`${code}\``
  if (code === 'upstream_refused') return "the provider's own status and message"
  const wait = code === 'upstream_rate_limited' ? ' with `Retry-After`' : ''
  return `${errorRows[code].status} \`${code}\`${wait}`
}

function recordText({ code, outcome, attempt }: Verdict): string {
  return `outcome \`${outcome}\`${code === null ? '' : `, error \`${code}\``}, attempt \`${attempt}\``
}

const costTexts: Partial<Record<VerdictName, string>> = {
  fine: 'the reported usage, else an estimate',
}

function costText(name: VerdictName): string {
  const [first] = verdicts[name].rules
  return costTexts[name] ?? chargeText(chargeRules.find(({ id }) => id === first)!)
}

interface Case {
  readonly verdict: VerdictName
  readonly when: string
}

/** One for each result of the fault, with the variants that lead to it. */
function casesOf(id: FaultId): readonly Case[] {
  const met = faultsOf(id).flatMap(({ asks, ...fault }) => {
    const [plain, stream] = [usualVerdict(fault, false)!, usualVerdict(fault, true)!]
    if (asks === 'plain') return [{ verdict: plain, when: `${fault.name} (plain)` }]
    if (asks === 'stream') return [{ verdict: stream, when: `${fault.name} (stream)` }]
    if (plain === stream) return [{ verdict: plain, when: fault.name }]
    return [
      { verdict: plain, when: `${fault.name} (plain)` },
      { verdict: stream, when: `${fault.name} (stream)` },
    ]
  })
  return [...Map.groupBy(met, ({ verdict }) => verdict)].map(([verdict, own]) => ({
    verdict,
    when: own.map(({ when }) => when).join('; '),
  }))
}

function writeResult(name: VerdictName): string {
  const verdict: Verdict = verdicts[name]
  const cells = [seenText(verdict), recordText(verdict), costText(name), consequences[verdict.channel][0]]
  return `| ${name} | ${cells.join(' | ')} |`
}

function writeFault(id: FaultId): string {
  const lines = casesOf(id).map(({ verdict, when }) => `- ${when}: **${verdict}**, ${seenText(verdicts[verdict])}`)
  const odd = exceptions
    .filter(({ fault }) => fault.startsWith(`${id} `))
    .map(({ fault, where, verdict, why }) => `- ${fault.slice(id.length + 1)}, ${where}: **${verdict}**. ${why}`)
  return `### ${id} ${faultKinds[id].title}

${faultKinds[id].does}

${[...lines, ...odd].join('\n')}

What to do: ${advice[id]}
`
}

export function writeFailures(): string {
  const faults = faultIds.map(id => `${chapters[id] === undefined ? '' : `## ${chapters[id]}\n\n`}${writeFault(id)}`)
  return `${HEAD}\n${faults.join('\n')}`
}

const channelLines = Object.values(consequences).map(([name, meaning]) => `| ${name} | ${meaning} |`)

const HEAD = `# When a provider fails

What happens for each of 36 faults of a provider: what callers get, what the record says, what it costs, and what you can
do. This page is generated from the tables that the fault tests use (\`npm run docs\`); how they are run is in
[proof](../proof.md#faults).

You can try every fault: \`weir fake-upstream --fault F14\` starts a provider that speaks every dialect and has that fault, and
prints how to point a gateway at it. \`--list\` lists all faults, \`--every 3\` applies the fault to every third call,
\`--fault 'F34 429 with seconds'\` picks one variant, and \`--scale 0.01\` shortens the pauses.

## For all faults

- **Before content**, an attempt is free (unless the provider may have run tools, see [who pays](who-pays.md)) and can be
  replaced: on another channel at once; on the same one after a pause, if
  there is no other and the upstream did no work. There are at most three attempts within the
  [retry budget](../how-it-works/routing.md#attempts). The results below are those of calls whose
  attempts all fail in the same way.
- **After content**, nothing is repeated. The caller gets an error event of its own dialect and the regular end of its
  stream, never just a closed connection. If the upstream itself broke off, the caller pays for what
  was delivered only if the provider reported the usage. It pays by the report, else by an estimate, if a bound of Weir
  ended the answer, the upstream blamed the request, the provider may run tools, or the caller had not read for more than a
  second ([who pays](who-pays.md)).
- **Statuses and types** are those of the caller's dialect ([errors](errors.md)). If an SDK should not retry by itself, the
  answer says so.
- **The record** (\`weir record <call id>\`) lists every attempt with its channel, result and duration.
- **Connections** on which an answer did not end correctly are closed.
- **Memory**: at most 32 MiB of one plain answer or of one event are held, and 256 MiB (or an eighth of the memory) of all
  answers together; then large ones are read one after another.

## Results

Each fault below names its variants, the result of each, and what the caller gets. *Plain* means a call without a stream.

| Result | The caller gets | The record | The cost | The channel |
|---|---|---|---|---|
${(Object.keys(verdicts) as VerdictName[]).map(writeResult).join('\n')}

| The channel | |
|---|---|
${channelLines.join('\n')}
`
