// The endpoints that count the tokens of a request.

import type { CountCall } from '../features/token-counts/token-counts.ts'
import type { CountDialect } from '../protocols/token-counts/token-count.ts'
import { countDialects } from '../protocols/token-counts/token-counts.ts'
import type { Answer, Endpoint } from './endpoint.ts'

const post = { method: 'POST', auth: 'key', kind: 'count_tokens' } as const

export function countEndpoints(countCall: CountCall): readonly Endpoint[] {
  const countIn =
    (dialect: CountDialect): Answer =>
    ({ caller, ...ask }) =>
      caller === undefined ? undefined : countCall({ ...ask, caller }, dialect)
  const gemini = countIn(countDialects.gemini)
  return [
    { ...post, path: '/v1/messages/count_tokens', answer: countIn(countDialects['anthropic-messages']) },
    { ...post, path: '/v1/responses/input_tokens', answer: countIn(countDialects['openai-responses']) },
    { ...post, path: '/api/v3/tokenization', answer: countIn(countDialects['ark-tokenization']) },
    ...['/v1beta/*', '/v1/*'].map(path => ({ ...post, path, ending: ':countTokens', answer: gemini })),
  ]
}
