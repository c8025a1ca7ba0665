// weir serve: starts the gateway, says on the very first start what one needs to try it, and drains on a signal.

import type { Config } from '../config.ts'
import type { Gateway } from '../main.ts'
import { startGateway } from '../main.ts'

const FIRST_CREDIT_USD = '10'

/**
 * A supervisor signals the whole process group, and npm forwards the signal that it gets, so one request to stop
 * reaches this process several times within milliseconds. Only after this time does a signal count as a second request.
 */
const SAME_SIGNAL_MS = 1_000

/** How long it may take to settle and to close when the window is over; the next start ends what is left then. */
const EXIT_MS = 4_500

function endWithin(ms: number): void {
  setTimeout(() => {
    process.stderr.write('weir: not everything could be settled in time; the next start will do it\n')
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
  // The handlers are set before the start: whoever reads that the gateway listens may stop it a moment later.
  process.on('SIGTERM', () => stop(config.drainDelayMs))
  // In a terminal there is no load balancer that must first see that the gateway is not ready.
  process.on('SIGINT', () => stop(0))
  // One call's mistake must not end all others. It is ours to mend all the same.
  process.on('unhandledRejection', fault => {
    process.stderr.write(`weir: unhandled rejection: ${fault instanceof Error ? fault.stack : String(fault)}\n`)
  })
  gateway = await startGateway(config)
  if (firstSignalMs !== undefined) {
    // The signal came during the start, so no call is under way yet.
    firstSignalMs = undefined
    return stop(0)
  }
  await greet(gateway, say)
}

/**
 * Secrets are said once: the key ever, as it is made and marked as made in one commit; the set-up token at each start
 * until there is an owner, another one each time.
 */
async function greet(gateway: Gateway, say: (line: string) => void): Promise<void> {
  const { url } = gateway
  const lines = [`Weir is listening on ${url}`]
  if (!gateway.hasOwner) lines.push('', ...(await setUpLines(gateway)))
  if (gateway.firstStart) {
    const created = { name: 'first key', tier: 'standard', credit: FIRST_CREDIT_USD, setting: 'first_key' }
    const { key } = await gateway.operator['keys-create']!(created)
    lines.push('', ...keyLines(url, String(key)))
  }
  say(lines.length === 1 ? lines[0]! : `\n${lines.join('\n')}\n`)
}

async function setUpLines({ url, operator }: Gateway): Promise<readonly string[]> {
  const { setupToken } = await operator.setup!({})
  return [
    `  Set-up token (once, for one hour)   ${String(setupToken)}`,
    '',
    'Become its owner, with this or, in another terminal, with "bin/weir setup":',
    '',
    `  curl ${url}/api/auth/setup -H 'Content-Type: application/json' \\`,
    `    -d '{"token":"${String(setupToken)}","name":"…","email":"…","password":"…"}'`,
  ]
}

const keyLines = (url: string, key: string): readonly string[] => [
  `  API key (once, with $${FIRST_CREDIT_USD} of credit)  ${key}`,
  '',
  'Try it:',
  '',
  `  curl -i ${url}/v1/chat/completions \\`,
  `    -H 'Authorization: Bearer ${key}' \\`,
  "    -H 'Content-Type: application/json' \\",
  `    -d '{"model":"demo/echo","messages":[{"role":"user","content":"Hello, river"}]}'`,
]
