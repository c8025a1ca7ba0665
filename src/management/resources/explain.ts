// What a call of a key would do: the dry run of X-Weir-Explain, for people who do not have the text of the key.

import * as z from 'zod'
import { refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { ManagementParts } from '../management-parts.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf } from './endpoint.ts'
import { jsonValue } from './fields.ts'
import { Hint } from './hint-schema.ts'
import { requireFound } from './list-queries.ts'

const Limit = z
  .object({
    whose: z.string().meta({ description: 'Whom the limit is for' }),
    resource: z.enum(['requests', 'tokens', 'concurrency']),
    span: z.enum(['minute', 'day']).nullable().meta({ description: 'Null for calls at the same time' }),
    limit: z.number(),
    remaining: z.number(),
    resetMs: z.number().meta({ description: 'Milliseconds until all of it is available again' }),
  })
  .meta({ id: 'ExplainedLimit' })

const WouldAnswer = z
  .object({
    status: z.number(),
    code: z.string().optional(),
    message: z.string().optional(),
    param: z.string().nullable().optional(),
    hint: Hint.optional(),
    retryAfterMs: z.number().optional(),
    replays: z.string().optional().meta({ description: 'The call whose stored answer would be sent again' }),
  })
  .meta({ id: 'ExplainedRefusal' })

const patterns = z.array(z.string()).nullable()

const KeyPart = z
  .object({
    id: z.string(),
    name: z.string().optional(),
    account: z.string(),
    tier: z.string(),
    strictCap: z.boolean(),
    strict: z.boolean(),
    keepsBodies: z.boolean(),
    explains: z.boolean(),
    may: z.object({ allows: patterns, denies: patterns, requires: patterns }),
  })
  .meta({ id: 'ExplainedKey' })

const PricePart = z
  .object({
    model: z.string(),
    free: z.boolean().optional(),
    version: z.number().optional(),
    rates: z
      .record(z.string(), z.string())
      .optional()
      .meta({ description: 'US dollars for a million, before the multiplier' }),
    cases: z.number().optional().meta({ description: 'How many cases with other rates the price has' }),
    multiplier: z.number().optional().meta({ description: 'Of the tier' }),
    serviceClass: z.string().optional(),
  })
  .meta({ id: 'ExplainedPrice' })

const HoldPart = z
  .object({
    usd: z.string(),
    inputTokensMax: z.number(),
    outputTokensMax: z.number(),
    thoughtTokensMax: z.number().optional(),
    choices: z.number(),
    searchesMax: z.number(),
    units: z.record(z.string(), z.number()).optional(),
    countedInputTokens: z.number().optional(),
    slices: z.enum(['streamed', 'collected']).optional(),
    cap: z.number().optional().meta({ description: 'The most output tokens of a choice that the money covers' }),
  })
  .meta({ id: 'ExplainedHold' })

const Candidate = z
  .object({
    model: z.string(),
    channel: z.string().nullable(),
    dropped: z.string().nullable().meta({ description: 'Why the channel cannot take the call; null: it can' }),
    availableInMs: z.number().nullable().optional(),
    share: z.number().nullable().optional(),
    score: z.number().nullable().optional().meta({ description: 'Less is better' }),
    tags: z.array(z.string()).optional(),
  })
  .meta({ id: 'ExplainedCandidate' })

const Upstream = z
  .object({
    channel: z.string(),
    method: z.string(),
    url: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string().nullable(),
    bodyBytes: z.number(),
    bodyCut: z.boolean(),
  })
  .meta({ id: 'ExplainedUpstream' })

const Picked = z
  .object({
    model: z.string().optional(),
    channel: z.string().optional(),
    reason: z.enum(['kept', 'policy', 'nearest']).optional(),
    kind: z.enum(['wait', 'none']).optional().meta({ description: 'No channel can take the call now' }),
    forMs: z.number().nullable().optional(),
    retryAfterMs: z.number().nullable().optional(),
  })
  .meta({ id: 'ExplainedChoice' })

const Routing = z
  .object({
    policy: z.string().optional(),
    affinity: z
      .object({ conversation: z.string(), keptOn: z.string().nullable(), state: z.enum(['new', 'kept', 'moved']) })
      .nullable()
      .optional(),
    picked: Picked.optional(),
    candidates: z.array(Candidate),
    upstream: Upstream.optional(),
  })
  .meta({ id: 'ExplainedRouting' })

/** The fields are those of docs/guides/explain.md. */
const Explanation = z
  .object({
    object: z.literal('weir.explanation'),
    requestId: z.string(),
    dialect: z.string(),
    wouldAnswer: WouldAnswer.nullable().meta({ description: 'Null: the call would be forwarded' }),
    key: KeyPart,
    limits: z.array(Limit).optional(),
    model: z.object({ requested: z.string(), resolved: z.array(z.string()).optional() }).optional(),
    prices: z.array(PricePart).optional(),
    funds: z.object({
      kind: z.enum(['prepaid', 'postpaid']),
      frozen: z.boolean(),
      available: z.string().nullable(),
    }),
    hold: HoldPart.optional(),
    loss: z.array(z.string()).optional(),
    overrides: z.array(z.string()).optional(),
    mediaToFetch: z.number().optional(),
    routing: Routing.optional().meta({ description: 'Only for support, admins and owners' }),
  })
  .meta({ id: 'Explanation' })

const Call = z
  .strictObject({
    path: z
      .string()
      .min(1)
      .max(500)
      .regex(/^\/[\x21-\x7e]*$/, must('must_be_path')),
    body: z.record(z.string(), jsonValue).meta({ description: 'The body of the call, in the dialect of the path' }),
    headers: z
      .record(
        z.string().regex(/^[a-z0-9-]{1,100}$/, must('must_be_lower_case')),
        z
          .string()
          .max(1_000)
          .regex(/^[\x20-\x7e]*$/),
      )
      .refine(headers => Object.keys(headers).length <= 20, must('must_have_few_headers', { max: 20 }))
      .optional()
      .meta({ description: 'Headers of the call, such as x-weir-translate. A key among them is ignored.' }),
    address: z
      .union([z.ipv4(), z.ipv6()])
      .optional()
      .meta({ description: 'The address of the caller. Default: the addresses of the key are not checked.' }),
  })
  .meta({
    examples: [
      { path: '/v1/chat/completions', body: { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] } },
    ],
  })

export const explainEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  endpoint({
    method: 'POST',
    path: '/api/web/keys/{key}/explain',
    who: { account: 'developer' },
    onlyReads: true,
    summary:
      'Tell what a call of this key would do. Nothing is sent, reserved or counted in the limits of the key. Channels are shown to staff only.',
    params: z.object({ key: idOf('key') }),
    body: Call,
    answer: Explanation,
    async run({ params: { key: id }, body: { path, body, headers = {}, address }, scope, requestId }) {
      requireFound(await parts.queryWorker.query('key', { id, scope }))
      const key = requireFound(await parts.reader.findKeyById(id))
      const gateway = parts.liveGateway()
      if (gateway === undefined) throw refusal('state_unfit', hintOf('gateway_needed'))
      const showsRouting = scope === null // staff
      const text = await gateway.explain({ key, path, body, headers, address, requestId, showsRouting })
      return { body: JSON.parse(text) as z.input<typeof Explanation> }
    },
  }),
]
