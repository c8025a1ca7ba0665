// docs/reference/failures.md, out of the table of faults and of what the fault matrix expects of each.

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

/** From which fault on. */
const chapters: Readonly<Partial<Record<FaultId, string>>> = {
  F1: 'Connection',
  F11: 'Timing',
  F16: 'HTTP',
  F23: 'Body',
  F28: 'Event streams',
  F33: 'Meaning',
}

const consequences: Readonly<Record<Consequence, readonly [name: string, meaning: string]>> = {
  nothing: ['stays as it is', 'Nothing is held against it.'],
  counted: [
    'a failure for its breaker',
    'Five in a row, or half of at least twenty within ten seconds, close it for about a second; each time one call ' +
      'tries it in vain, for twice as long, up to a minute. When all channels are closed, the one that is nearest to ' +
      'recovery is tried.',
  ],
  closed: [
    'closed until its time',
    'Left alone for as long as the provider asked, else for a second, and twice as long each time again, up to a ' +
      'minute. Others are tried meanwhile.',
  ],
  spent: [
    'closed for long',
    'As one that is limited, but for a minute and then twice as long each time, up to an hour, with an error in the ' +
      'log.',
  ],
  doubted: [
    'doubted',
    'It may be the credential or what was asked for: five in a row, with nothing else between them, switch it off.',
  ],
  off: [
    'switched off',
    'Left alone for five minutes, with an error in the log; then one call tries whether it works again.',
  ],
}

/** In all dialects, each once. */
function faultsOf(id: FaultId): readonly Fault[] {
  const all = wires.flatMap(dialect => faultsIn(dialect)).filter(fault => fault.id === id)
  return all.filter(({ name }, at) => all.findIndex(other => other.name === name) === at)
}

function seenText({ code, midway }: Verdict): string {
  if (code === null) return '200, the answer'
  if (midway) return `what came until then, then an error event: \`${code}\``
  if (code === 'upstream_refused') return "the provider's own status and words"
  const wait = code === 'upstream_rate_limited' ? ' with `Retry-After`' : ''
  return `${errorRows[code].status} \`${code}\`${wait}`
}

function recordText({ code, outcome, attempt }: Verdict): string {
  return `outcome \`${outcome}\`${code === null ? '' : `, error \`${code}\``}, attempt \`${attempt}\``
}

const costTexts: Partial<Record<VerdictName, string>> = {
  fine: 'the reported usage; an estimate where none can be believed',
}

function costText(name: VerdictName): string {
  const [first] = verdicts[name].rules
  return costTexts[name] ?? chargeText(chargeRules.find(({ id }) => id === first)!)
}

interface Case {
  readonly verdict: VerdictName
  readonly when: string
}

/** One for each verdict that the fault can come to, with what must be so for it. */
function casesOf(id: FaultId): readonly Case[] {
  const met = faultsOf(id).flatMap(({ asks, ...fault }) => {
    const [plain, stream] = [usualVerdict(fault, false)!, usualVerdict(fault, true)!]
    if (asks === 'plain') return [{ verdict: plain, when: `${fault.name} (whole answers)` }]
    if (asks === 'stream') return [{ verdict: stream, when: `${fault.name} (streams)` }]
    if (plain === stream) return [{ verdict: plain, when: fault.name }]
    return [
      { verdict: plain, when: `${fault.name} (whole answers)` },
      { verdict: stream, when: `${fault.name} (streams)` },
    ]
  })
  return [...Map.groupBy(met, ({ verdict }) => verdict)].map(([verdict, own]) => ({
    verdict,
    when: own.map(({ when }) => when).join('; '),
  }))
}

function writeFault(id: FaultId): string {
  const lines = casesOf(id).map(({ verdict: name, when }) => {
    const verdict: Verdict = verdicts[name]
    const cells = [seenText(verdict), recordText(verdict), costText(name), consequences[verdict.channel][0]]
    return `| ${when} | ${cells.join(' | ')} |`
  })
  const odd = exceptions
    .filter(({ fault }) => fault.startsWith(`${id} `))
    .map(({ fault, where, verdict, why }) => {
      const seen = seenText(verdicts[verdict])
      return `For *${fault.slice(id.length + 1)}*, ${where}, the caller sees ${seen}: ${why}`
    })
  return `### ${id} ${faultKinds[id].title}

${[faultKinds[id].does, ...odd].join('\n\n')}

| When | The caller sees | The record says | It costs | The channel |
|---|---|---|---|---|
${lines.join('\n')}

**To do:** ${advice[id]}
`
}

export function writeFailures(): string {
  const faults = faultIds.map(id => `${chapters[id] === undefined ? '' : `## ${chapters[id]}\n\n`}${writeFault(id)}`)
  return `${HEAD}\n${faults.join('\n')}`
}

const channelLines = Object.values(consequences).map(([name, meaning]) => `| ${name} | ${meaning} |`)

const HEAD = `# When a provider fails

Fault by fault: what callers see, what the record says, what it costs, what becomes of the channel, and what to do. This
page is made from the tables that the fault matrix holds the gateway to (\`npm run docs\`); how it is run and what it
found is in [proof.md](../proof.md).

Every row can be rehearsed: \`weir fake-upstream --fault F14\` starts a provider that speaks every dialect and commits
that fault, and prints the lines that point a gateway at it; \`--list\` names all, \`--every 3\` spares two calls of
three, \`--fault 'F34 429 with seconds'\` takes one of several, and \`--scale 0.01\` makes pauses shorter for a gateway
whose own times are. Without \`--host\` nobody but this machine can reach it.

## What holds for all

- **Before content** an attempt may be replaced, and nothing of it is charged: on another channel at once; on the same
  one after a pause, if there is no other, the fault may pass, and nothing can have been made of the request (none of it
  has left, or an error status came back). Three attempts at most; of the calls of a name at most
  one in five is tried again, but for the first few ([routing.md](../how-it-works/routing.md)). What a row says that a caller sees is
  what it sees when all of its attempts came to the same.
- **After content** nothing is tried again. The caller gets an error event of its own dialect and the legal end of its
  stream, never a connection that is simply cut, and pays for what was delivered only if the provider itself told what
  it came to.
- **Statuses and types** are those of the caller's dialect; [errors.md](errors.md) lists them for each code. Where an
  SDK should not try again by itself, it is told so.
- **In the record** (\`weir record <call id>\`) stands every attempt, with its channel, what it came to and how long it
  took; \`X-Weir-Attempts\` tells callers how many there were.
- **Sockets** on which an answer did not end beyond doubt are closed, never used again.
- **Memory**: of a whole answer at most 32 MiB are held, and as much of one event of a stream; of all answers together
  256 MiB, or an eighth of the memory where that is less: then large ones are read one after another.

What becomes of a channel:

| | |
|---|---|
${channelLines.join('\n')}
`
