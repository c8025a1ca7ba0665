// weir serve: starts the gateway, prints on the very first start how to try it, and drains on a signal.

import type { Config } from '../config.ts'
import { readConfig } from '../config.ts'
import type { Gateway } from '../main.ts'
import { startGateway } from '../main.ts'
import type { ShownOnce } from '../management/config-file/apply.ts'
import { checkIgnoredVariables, trackReads } from './checks/settings.ts'
import { duringMigration } from './data-upgrade.ts'
import { harmlessLines } from './print.ts'
import type { ListeningProcess } from './processes.ts'
import { warnIfPublic } from './public-output.ts'
import { buildSend } from './send.ts'

/**
 * A supervisor signals the whole process group, and npm forwards the signal that it gets, so one request to stop
 * reaches this process several times within milliseconds. Only after this time does a signal count as a second request.
 */
const SAME_SIGNAL_MS = 1_000

/** The time to settle calls and to close after the drain period. The next start settles what is left. */
const EXIT_MS = 4_500

function endWithin(ms: number): void {
  setTimeout(() => {
    process.stderr.write('weir: not all calls could be settled in time; the next start settles them\n')
    process.exit(1)
  }, ms).unref()
}

export async function serve(config: Config, say: (line: string) => void): Promise<void> {
  let gateway: Gateway | undefined
  let firstSignalMs: number | undefined
  const stop = (delayMs: number): void => {
    const isSecond = firstSignalMs !== undefined
    firstSignalMs ??= performance.now()
    if (gateway === undefined) return
    if (isSecond && performance.now() - firstSignalMs < SAME_SIGNAL_MS) return
    endWithin((isSecond ? 0 : config.drainMs) + EXIT_MS)
    void gateway.drain(delayMs).then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  // The handlers are set before the start: a signal may come right after the gateway prints that it listens.
  process.on('SIGTERM', () => stop(config.drainDelayMs))
  // In a terminal there is no load balancer that must first see that the gateway is not ready.
  process.on('SIGINT', () => stop(0))
  // The parent of this process is dead, so nothing would ever stop this process.
  process.on('disconnect', () => stop(0))
  // An unhandled rejection is a bug, but a bug in one call must not end all other calls.
  process.on('unhandledRejection', fault => {
    process.stderr.write(`weir: unhandled rejection: ${fault instanceof Error ? fault.stack : String(fault)}\n`)
  })
  const read = new Set<string>()
  const trackedConfig = readConfig(trackReads(config.env, read))
  gateway = await duringMigration(config.dataFolder, () =>
    startGateway(trackedConfig, { onCreatedByFile: shown => sayCreated(shown, say) }),
  )
  if (firstSignalMs !== undefined) {
    // The signal came during the start, so no call is running yet.
    firstSignalMs = undefined
    return stop(0)
  }
  const { url, metricsUrl } = gateway
  process.send?.({ url, metricsUrl } satisfies ListeningProcess)
  if (config.processNumber > 1) return
  await greet(gateway, say)
  warnOfIgnoredVariables(config, read)
}

/** A setting whose name is misspelt would have no effect, silently. */
function warnOfIgnoredVariables({ env }: Config, read: ReadonlySet<string>): void {
  for (const { about, says, remedy } of checkIgnoredVariables(env, read)) {
    process.stderr.write(`weir: warning: ${harmlessLines(`${about}: ${says} ${remedy}`)}\n`)
  }
}

/**
 * Prints secrets that cannot be shown again. The key is printed once: one transaction creates it and records that it
 * exists. A new set-up token is printed at each start until there is an owner.
 */
async function greet(gateway: Gateway, say: (line: string) => void): Promise<void> {
  const { url } = gateway
  const lines = [`Weir is listening on ${url}`]
  const first = await gateway.inFirstStart(() => buildSend(gateway.manage).machine('first-key'))
  if (first !== undefined) lines.push('', ...keyLines(url, String(first.key)))
  if (!gateway.hasOwner) lines.push('', ...(await setUpLines(gateway)))
  if (lines.length === 1) return say(lines[0]!)
  say(`\n${lines.join('\n')}\n`)
  warnIfPublic()
}

async function setUpLines({ url, manage }: Gateway): Promise<readonly string[]> {
  const { setupToken } = await buildSend(manage).machine('setup-token')
  return [
    `  Set-up token (one use, one hour)    ${String(setupToken)}`,
    '',
    `Open ${url}/console/ in a browser and enter it to create the owner. Without a browser: "bin/weir setup", or`,
    '',
    `  curl ${url}/api/auth/setup -H 'Content-Type: application/json' \\`,
    `    -d '{"token":"${String(setupToken)}","name":"…","email":"…","password":"…"}'`,
  ]
}

/** Printed at once: a start that fails later must not lose the secret. */
function sayCreated({ name, secret }: ShownOnce, say: (line: string) => void): void {
  say(`The configuration file created the ${harmlessLines(name)}. Its secret is shown once: ${secret}`)
  warnIfPublic()
}

const keyLines = (url: string, key: string): readonly string[] => [
  `  API key (shown once)    ${key}`,
  '',
  'Its calls are priced and recorded, and need no balance. To limit what they cost: bin/weir budgets set wk-… day 5',
  '',
  'Try it:',
  '',
  `  curl -i ${url}/v1/chat/completions \\`,
  `    -H 'Authorization: Bearer ${key}' \\`,
  "    -H 'Content-Type: application/json' \\",
  `    -d '{"model":"demo/echo","messages":[{"role":"user","content":"Hello, river"}]}'`,
]
