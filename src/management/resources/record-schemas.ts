// Schemas of call records: a record in a list, and a record in full with its bill, its timeline, its attempts and why it
// went where it went.

import * as z from 'zod'
import { timelineStages } from '../../store/records/call-times.ts'
import { time } from './endpoint.ts'
import { tokenFields } from './fields.ts'
import { money } from './money-input.ts'

const ms = z.number()

export const ShortRecord = z
  .object({
    id: z.string(),
    time,
    account: z.string(),
    accountName: z.string().nullable(),
    key: z.string(),
    keyName: z.string().nullable(),
    keySuffix: z.string().nullable().meta({ description: 'The last characters of the key' }),
    dialect: z.string(),
    model: z.string().nullable(),
    channel: z.string().nullable(),
    status: z.number(),
    error: z.string().nullable(),
    outcome: z.string(),
    streamed: z.boolean(),
    ...tokenFields,
    cost: money,
    shortfall: money,
    firstContentMs: ms.nullable().meta({ description: 'From the arrival of the request to the first content' }),
    durationMs: ms.meta({ description: 'From the arrival of the request until its record was made' }),
    endUser: z.string().nullable(),
    loss: z.array(z.string()),
    conversation: z
      .string()
      .nullable()
      .meta({
        description:
          'The same for all turns of a conversation of the account. Null where a call has no conversation, was refused before ' +
          'it was routed, or has no text of the earlier turns',
      }),
    seq: z
      .number()
      .optional()
      .meta({ description: 'Its place in the order of settling, where calls are listed in that order' }),
  })
  .meta({ id: 'Record' })

const RecordLine = z
  .object({
    what: z.string().meta({ description: 'What is billed, such as input or output tokens' }),
    count: z.number(),
    rate: z.string().meta({ description: 'US dollars per million, as decimal text' }),
  })
  .meta({ id: 'RecordLine' })

const TimelineSpan = z
  .object({
    stage: z.enum(timelineStages),
    atMs: ms
      .nullable()
      .meta({ description: 'When the stage began, since the arrival of the request. Null in older records' }),
    ms,
  })
  .meta({ id: 'RecordTimelineSpan' })

const Attempt = z
  .object({
    channel: z.string(),
    model: z.string().nullable(),
    atMs: ms.nullable().meta({ description: 'When it began, since the arrival of the request. Null in older records' }),
    ms: ms.meta({ description: 'Until it failed, or until the end of the answer' }),
    firstMs: ms.nullable().meta({ description: 'From its beginning to the first content' }),
    status: z.number().nullable().meta({ description: 'The HTTP status of the upstream, if it sent one' }),
    verdict: z.string(),
  })
  .meta({ id: 'RecordAttempt' })

const Routing = z
  .object({
    candidates: z.number().nullable().meta({ description: 'How many channels routing could choose from' }),
    policy: z.string().nullable(),
    by: z
      .string()
      .nullable()
      .meta({ description: 'What decided: the conversation (kept), the policy, or the nearest' }),
    affinity: z
      .string()
      .nullable()
      .meta({ description: 'Whether the conversation was new, kept its channel, or was moved to another' }),
    dropped: z
      .record(z.string(), z.number())
      .meta({ description: 'How many channels could not take the call, by reason' }),
    limits: z.array(
      z
        .object({ resource: z.string(), span: z.string().nullable(), remaining: z.number(), limit: z.number() })
        .meta({ id: 'RecordLimit' }),
    ),
    overrides: z.array(z.string()).meta({ description: 'The fields and headers that the channel replaced' }),
  })
  .meta({ id: 'RecordRouting' })

const Transfer = z
  .object({
    kind: z.string(),
    amount: money,
    made: time,
    reference: z.string().nullable(),
    author: z.string().nullable(),
  })
  .meta({ id: 'RecordTransfer' })

export const WholeRecord = ShortRecord.extend({
  requestedModel: z.string().nullable(),
  rule: z.string(),
  usageSource: z.string(),
  held: money,
  priceVersion: z.number().nullable(),
  lines: z.array(RecordLine),
  timeline: z.array(TimelineSpan).meta({
    description:
      'The stages in the order of time. Writing the record and the charge comes after it. `hold`: money was reserved; ' +
      '`wait`: for a channel; `forward`: from the first attempt to the end of the answer.',
  }),
  tags: z.record(z.string(), z.string()),
  requestHash: z.string().nullable(),
  upstreamHash: z.string().nullable(),
  attempts: z.array(Attempt).nullable().meta({ description: 'Null for members' }),
  routing: Routing.nullable().meta({ description: 'Null for members' }),
  transfers: z.array(Transfer).meta({ description: 'The transfers of the call: a charge, a shortfall, a refund' }),
}).meta({ id: 'RecordInFull' })
