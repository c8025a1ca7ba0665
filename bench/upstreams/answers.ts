// The answers of the upstreams: fixed bytes, so that the load generator can compare every answer completely.

const MODEL = 'gpt-4o-mini-2024-07-18'
const CREATED = 1_772_000_000

const usage = {
  prompt_tokens: 61,
  completion_tokens: 100,
  total_tokens: 161,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
}

const content =
  'A weir is a low wall across a river. It raises the water behind it, lets the rest flow over its edge, and, ' +
  'because the height of that flow follows the amount of water, it also measures the river.'

/** Without dollar signs and single quotes, because it is part of an nginx configuration. */
export const plainAnswer = JSON.stringify({
  id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  object: 'chat.completion',
  created: CREATED,
  model: MODEL,
  choices: [
    { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' },
  ],
  usage,
  service_tier: 'default',
  system_fingerprint: 'fp_44709d6fcb',
})

function chunk(fields: object): string {
  const head = { id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG', object: 'chat.completion.chunk', created: CREATED }
  return `data: ${JSON.stringify({ ...head, model: MODEL, system_fingerprint: 'fp_44709d6fcb', ...fields })}\n\n`
}

const choice = (delta: object, finish: string | null): object => ({
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
})

/** The events of a stream, each of them flushed alone. The first has the role, the last the finish reason. */
export function streamEvents(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    if (index === 0) return chunk(choice({ role: 'assistant', content: '', refusal: null }, null))
    return chunk(index === count - 1 ? choice({}, 'stop') : choice({ content: ` word${index}` }, null))
  })
}

/** The events after them: the usage, if the call requests it, and the end. */
export const closingEvents = (withUsage: boolean): string =>
  `${withUsage ? chunk({ choices: [], usage }) : ''}data: [DONE]\n\n`

export const wholeStream = (count: number): string => streamEvents(count).join('') + closingEvents(true)
