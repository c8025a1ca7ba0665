// The endpoints that count the tokens of a request.

import type { CountCall } from '../features/token-counts/token-counts.ts'
import type { TokenCountDialect } from '../protocols/token-counts/count-dialect.ts'
import { tokenCountDialects } from '../protocols/token-counts/count-dialects.ts'
import type { Endpoint, EndpointHandler } from './endpoint.ts'

const post = { method: 'POST', auth: 'key', kind: 'count_tokens' } as const

export function countEndpoints(countCall: CountCall): readonly Endpoint[] {
  const countIn =
    (dialect: TokenCountDialect): EndpointHandler =>
    ({ caller, ...request }) =>
      caller === undefined ? undefined : countCall({ ...request, caller }, dialect)
  const gemini = countIn(tokenCountDialects.gemini)
  return [
    { ...post, path: '/v1/messages/count_tokens', answer: countIn(tokenCountDialects['anthropic-messages']) },
    { ...post, path: '/v1/responses/input_tokens', answer: countIn(tokenCountDialects['openai-responses']) },
    { ...post, path: '/api/v3/tokenization', answer: countIn(tokenCountDialects['ark-tokenization']) },
    ...['/v1beta/*', '/v1/*'].map(path => ({ ...post, path, ending: ':countTokens', answer: gemini })),
  ]
}
