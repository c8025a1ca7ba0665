// Chat streams spelled by hand, for tests that compare bytes, and the scripts that send them.

import { streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { end, gate, scripted, split } from '../../tools/fake-upstream/script.ts'

export const event = (json: object | string): string =>
  `data: ${typeof json === 'string' ? json : JSON.stringify(json)}\n\n`

const chunkOf = (choice: object, more: object): string =>
  event({ id: 'c-1', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }], ...more })

export const role = (more: object = {}): string =>
  chunkOf({ delta: { role: 'assistant', content: '' }, finish_reason: null }, more)
export const piece = (content: string, more: object = {}): string =>
  chunkOf({ delta: { content }, finish_reason: null }, more)
export const finish = (more: object = {}): string => chunkOf({ delta: {}, finish_reason: 'stop' }, more)
export const counts = (input: number, output: number): { usage: object } => ({
  usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
})
export const usageOnly = (input: number, output: number): string =>
  event({ id: 'c-1', object: 'chat.completion.chunk', choices: [], ...counts(input, output) })
export const errorEvent = (message = 'The engine broke.'): string => event({ error: { message, type: 'server_error' } })
export const done = event('[DONE]')

/** A complete stream that reports 7 and 5 tokens. */
export const goodStream = role() + piece('Hel') + piece('lo') + finish() + usageOnly(7, 5) + done

/** Sends the text as a stream, in chunks of so many bytes (all at once by default), and ends well. */
export function sends(text: string | Uint8Array, size = Number.MAX_SAFE_INTEGER): Script {
  return { starts: 'request', steps: () => [streamHead, ...split(text, size), end] }
}

/** Runs the script once the promise has settled. */
export function after(opens: Promise<unknown>, then: Script): Script {
  return scripted(function* waiting(request) {
    yield gate(opens)
    yield* then.steps(request)
  })
}
