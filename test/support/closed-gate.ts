// An upstream that accepts requests and answers none of them until the test calls `open`.

import { answer } from '../../tools/fake-upstream/answers.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'

export interface ClosedGate {
  readonly script: Script
  taken(): number
  open(): void
}

export function closedGate(): ClosedGate {
  const opened = Promise.withResolvers<void>()
  const whole = answer('It runs to the sea.')
  let taken = 0
  const script = scripted(function* steps(request): Iterable<Step> {
    taken++
    yield gate(opened.promise)
    yield* whole.steps(request)
  })
  return { script, taken: () => taken, open: () => opened.resolve() }
}
