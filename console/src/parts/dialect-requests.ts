// The same prompt as a request of each dialect, and the text of each answer.

export const dialects = ['chat', 'responses', 'messages', 'gemini', 'ark'] as const
export type Dialect = (typeof dialects)[number]

export interface Prompt {
  readonly model: string
  readonly system: string
  readonly text: string
  readonly maxTokens: number
}

interface DialectRequest {
  readonly path: string
  /** The header that carries the key, and how the key is written in it. */
  readonly keyHeader: readonly [name: string, value: (key: string) => string]
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

const bearer = ['Authorization', (key: string) => `Bearer ${key}`] as const

const chatBody = ({ model, system, text, maxTokens }: Prompt): unknown => ({
  model,
  messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), { role: 'user', content: text }],
  max_tokens: maxTokens,
})

const requests: Readonly<Record<Dialect, (prompt: Prompt) => DialectRequest>> = {
  chat: prompt => ({ path: '/v1/chat/completions', keyHeader: bearer, headers: {}, body: chatBody(prompt) }),
  responses: ({ model, system, text, maxTokens }) => ({
    path: '/v1/responses',
    keyHeader: bearer,
    headers: {},
    body: {
      model,
      ...(system !== '' && { instructions: system }),
      input: text,
      max_output_tokens: maxTokens,
      store: false,
    },
  }),
  messages: ({ model, system, text, maxTokens }) => ({
    path: '/v1/messages',
    keyHeader: ['x-api-key', key => key],
    headers: { 'anthropic-version': '2023-06-01' },
    body: {
      model,
      ...(system !== '' && { system }),
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: text }],
    },
  }),
  gemini: ({ model, system, text, maxTokens }) => ({
    path: `/v1beta/models/${model}:generateContent`,
    keyHeader: ['x-goog-api-key', key => key],
    headers: {},
    body: {
      ...(system !== '' && { systemInstruction: { parts: [{ text: system }] } }),
      contents: [{ role: 'user', parts: [{ text }] }],
      generationConfig: { maxOutputTokens: maxTokens },
    },
  }),
  ark: prompt => ({ path: '/api/v3/chat/completions', keyHeader: bearer, headers: {}, body: chatBody(prompt) }),
}

export const requestOf = (dialect: Dialect, prompt: Prompt): DialectRequest => requests[dialect](prompt)

type Part = Readonly<Record<string, unknown>>
const list = (value: unknown): readonly Part[] => (Array.isArray(value) ? (value as Part[]) : [])
const textIn = (part: Part | undefined): string => (typeof part?.text === 'string' ? part.text : '')

const texts: Readonly<Record<Dialect, (answer: Part) => string>> = {
  chat: answer => String((list(answer.choices)[0]?.message as Part | undefined)?.content ?? ''),
  ark: answer => String((list(answer.choices)[0]?.message as Part | undefined)?.content ?? ''),
  responses: answer =>
    list(answer.output)
      .flatMap(item => list(item.content).map(textIn))
      .join(''),
  messages: answer => list(answer.content).map(textIn).join(''),
  gemini: answer =>
    list((list(answer.candidates)[0]?.content as Part | undefined)?.parts)
      .map(textIn)
      .join(''),
}

export const answerText = (dialect: Dialect, answer: unknown): string => texts[dialect](answer as Part)
