// Every error of the gateway in every dialect: the official SDKs raise the class of its status with the message and the
// request id, and retry only if that may help.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ErrorCode } from '../../src/base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../../src/base/errors.ts'
import { errorHeaders } from '../../src/pipeline/reply/reply-headers.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { Client } from './clients/client.ts'
import { clients } from './clients/list.ts'
import { rawCallers } from './raw-callers.ts'

const codes = Object.keys(errorRows) as ErrorCode[]
const requestId = 'req_0123456789a'
let answer: Response
let server: ReturnType<typeof Bun.serve>
beforeAll(() => {
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => answer })
})
afterAll(() => server.stop(true))

const refusalOf = (code: ErrorCode): Refusal => new Refusal(code, 'for the log only', { param: 'model' })

function answerOf({ dialect }: Client, code: ErrorCode): Response {
  const refusal = refusalOf(code)
  const { status, body } = protocols[dialect].writeError(buildErrorReply(refusal, requestId))
  const ids = { 'content-type': 'application/json', 'x-request-id': requestId, 'request-id': requestId }
  return new Response(body, { status, headers: { ...ids, ...errorHeaders(refusal, 2) } })
}

/** Error classes of SDKs that depend on the error code. */
const ownClasses: Partial<Record<ErrorCode, string>> = {
  thread_unknown: 'ThreadNotFoundError',
  thread_unsupported: 'ThreadUnsupportedRequestError',
}

const official = clients.filter(({ name }) => !name.startsWith('AI SDK'))

describe.each(official.map(client => [client.name, client] as const))('%s', (_name, client) => {
  test.each(codes)('raises %s', async code => {
    const { status, kind, message } = errorRows[code]
    answer = answerOf(client, code)
    const isOverload = kind === 'overloaded' && client.dialect === 'anthropic-messages'
    expect(answer.status).toBe(isOverload ? 529 : status)
    const sent = answer.status
    rawCallers[client.dialect].error(await answer.clone().json(), sent)
    const session = client.connect(`http://127.0.0.1:${server.port}`, 'wk-x')
    const options = { model: 'a/b', turns: [session.user('x')] }
    const raised: unknown = await session.ask('plain', options).catch((fault: unknown) => fault)
    const fault = session.fault(raised)
    expect([client.raises(sent), ownClasses[code]]).toContain(fault.kind)
    expect(fault.status).toBe(sent)
    expect(fault.message.replaceAll('\\"', '"')).toContain(message)
    expect(fault.message).not.toContain('for the log only')
    if (client.hasRequestId) expect(fault.requestId).toBe(requestId)
  })
})

test.each(codes)('%s: an SDK retries only if it may help, and not after the gateway has retried', code => {
  const { status, retry } = errorRows[code]
  const isRetried = status === 408 || status === 409 || status === 429 || status >= 500
  const [first, later] = [errorHeaders(refusalOf(code), 1), errorHeaders(refusalOf(code), 2)]
  expect(first['x-should-retry']).toBe(isRetried && !retry ? 'false' : undefined)
  expect(later['x-should-retry']).toBe(isRetried ? 'false' : undefined)
  if (first['retry-after'] !== undefined) expect(Number(first['retry-after'])).toBeLessThanOrEqual(60)
})
