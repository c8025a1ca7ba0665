// The URLs that tell how long a request is.

import type { CountCall } from '../features/token-counts/token-counts.ts'
import type { CountDialect } from '../protocols/token-counts/token-count.ts'
import { countDialects } from '../protocols/token-counts/token-counts.ts'
import type { Answer, Endpoint } from './endpoint.ts'

const post = { method: 'POST', auth: 'key', kind: 'count_tokens' } as const

export function countEndpoints(countCall: CountCall): readonly Endpoint[] {
  const counts =
    (dialect: CountDialect): Answer =>
    ({ caller, ...ask }) =>
      caller === undefined ? undefined : countCall({ ...ask, caller }, dialect)
  const gemini = counts(countDialects.gemini)
  return [
    { ...post, path: '/v1/messages/count_tokens', answer: counts(countDialects['anthropic-messages']) },
    { ...post, path: '/v1/responses/input_tokens', answer: counts(countDialects['openai-responses']) },
    { ...post, path: '/api/v3/tokenization', answer: counts(countDialects['ark-tokenization']) },
    ...['/v1beta/*', '/v1/*'].map(path => ({ ...post, path, ending: ':countTokens', answer: gemini })),
  ]
}
