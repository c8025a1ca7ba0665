// F33 to F36: well-formed answers with bad content: impossible usage, limits, refusals, leaked credentials.

import type { AnswerOptions } from '../answers.ts'
import { answer, errorMidStream, fail, jsonAnswer, streamed } from '../answers.ts'
import type { Script } from '../script.ts'
import { scripted } from '../script.ts'
import type { FaultKit, FaultRow } from './fault.ts'

const pieces = ['Hel', 'lo ', 'world']

/** Always more output than the request allows. */
function aboveTheCap({ dialect }: FaultKit): Script {
  return scripted(request => {
    const { promptWords, outputMax = 1_000_000 } = dialect.read(request)
    return answer('Hello', { dialect, usage: { input: promptWords, output: outputMax * 2 } }).steps(request)
  })
}

function usageFaults(kit: FaultKit): readonly FaultRow[] {
  const { dialect } = kit
  const answerWithUsage = (usage: AnswerOptions['usage'] & {}) => answer('Hello', { dialect, usage })
  const raw = (input: string, output: string) => answerWithUsage({ input: { json: input }, output: { json: output } })
  const eachPiece = (usageOfPiece: AnswerOptions['usageOfPiece'] & {}) =>
    streamed(pieces, { dialect, usageOfPiece, usage: usageOfPiece(pieces.length) })
  const early: readonly FaultRow[] = [
    ['F33', 'usage shrinking', 'stream', eachPiece(piece => ({ input: 5, output: 9 - piece }))],
    ['F33', 'usage cumulative', 'stream', eachPiece(piece => ({ input: 5, output: piece + 1 }))],
    ['F33', 'usage as deltas', 'stream', eachPiece(piece => ({ input: piece === 0 ? 5 : 0, output: 1 }))],
  ]
  return [
    ['F33', 'usage missing', 'either', answerWithUsage('missing')],
    ['F33', 'usage null', 'either', answerWithUsage({ json: 'null' })],
    ['F33', 'usage an empty object', 'either', answerWithUsage({ json: '{}' })],
    ['F33', 'usage a list', 'either', answerWithUsage({ json: '[1,2,3]' })],
    ['F33', 'usage negative', 'either', raw('-5', '-7')],
    ['F33', 'usage beyond any number', 'either', raw('1e400', '1e400')],
    ['F33', 'usage not whole', 'either', raw('1.5', '2.5')],
    ['F33', 'usage as text', 'either', raw('"5"', '"7"')],
    ['F33', 'usage of nulls', 'either', raw('null', 'null')],
    ['F33', 'usage above the cap', 'either', aboveTheCap(kit)],
    ['F33', 'usage of more cached than input', 'either', answerWithUsage({ input: 5, output: 1, cached: 50 })],
    ...(dialect.traits.earlyUsage ? early : []),
  ]
}

function limitFaults({ dialect }: FaultKit): readonly FaultRow[] {
  const limited = (retryAfter: string) => fail(429, { dialect, retryAfter })
  const untilDate = scripted(request => limited(new Date(Date.now() + 2_000).toUTCString()).steps(request))
  return [
    ['F34', '429 with seconds', 'either', limited('2')],
    ['F34', '429 with a date', 'either', untilDate],
    ['F34', '429 without Retry-After', 'either', fail(429, { dialect })],
    ['F34', '429 until long after us', 'either', limited('99999999999999999999')],
    ['F34', '429 with negative seconds', 'either', limited('-1')],
    ['F34', '429 with a date long past', 'either', limited('Thu, 01 Jan 1970 00:00:00 GMT')],
    ['F34', '429 with nonsense', 'either', limited('soon')],
    ...[500, 502, 503, 504, 529].map(
      (status): FaultRow => ['F34', String(status), 'either', fail(status, { dialect })],
    ),
  ]
}

function refusalFaults({ dialect }: FaultKit): readonly FaultRow[] {
  const refused = (status: number, message: string, rest: { code?: string; param?: string } = {}) =>
    fail(status, { dialect, error: { message, type: 'invalid_request_error', ...rest } })
  return [
    ['F35', '401', 'either', refused(401, 'Incorrect API key provided.', { code: 'invalid_api_key' })],
    ['F35', '403', 'either', refused(403, 'Country, region, or territory not supported.')],
    [
      'F35',
      '404 for the model',
      'either',
      refused(404, 'The model `echo` does not exist.', { code: 'model_not_found' }),
    ],
    [
      'F35',
      '429 because we have not paid',
      'either',
      fail(429, {
        dialect,
        error: { message: 'Your credit balance is too low.', type: 'insufficient_quota', code: 'insufficient_quota' },
      }),
    ],
    [
      'F35',
      "400 that is the caller's",
      'either',
      refused(400, 'The maximum context length is 4 tokens.', {
        code: 'context_length_exceeded',
        param: 'messages',
      }),
    ],
    [
      'F35',
      '400 that is ours',
      'either',
      refused(400, 'Unrecognized request argument supplied: stream_options', {
        param: 'stream_options',
      }),
    ],
  ]
}

/** Repeats the credentials of the request, as badly built providers and proxies do. */
function leakFaults({ dialect }: FaultKit): readonly FaultRow[] {
  const names = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key']
  const leak = (speak: (secret: string) => Script) =>
    scripted(request =>
      speak(
        names
          .map(name => request.headers.get(name) ?? '')
          .join(' ')
          .trim(),
      ).steps(request),
    )
  const error = (secret: string) => ({ message: `Incorrect API key: ${secret}.`, type: 'invalid_request_error' })
  return [
    ['F36', 'credentials in a 401', 'either', leak(secret => fail(401, { dialect, error: error(secret) }))],
    ['F36', 'credentials in a 400', 'either', leak(secret => fail(400, { dialect, error: error(secret) }))],
    ['F36', 'credentials in a 500', 'either', leak(secret => fail(500, { dialect, error: error(secret) }))],
    [
      'F36',
      'credentials in a header',
      'either',
      leak(secret => fail(400, { dialect, headers: { 'x-request-authorization': secret } })),
    ],
    [
      'F36',
      'credentials in an error with 200',
      'either',
      leak(secret => scripted(() => jsonAnswer(200, dialect.error(error(secret))))),
    ],
    [
      'F36',
      'credentials in an error event',
      'stream',
      leak(secret => errorMidStream(pieces, error(secret), { dialect })),
    ],
  ]
}

export function meaningFaults(kit: FaultKit): readonly FaultRow[] {
  return [...usageFaults(kit), ...limitFaults(kit), ...refusalFaults(kit), ...leakFaults(kit)]
}
