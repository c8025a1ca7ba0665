// Ark's bots, and chats with a stored context. The body is that of a chat, and the model is a bot or an endpoint. The
// answer of a bot may report the usage of each of its models.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { noUsage, tokenCount } from '../../base/money/usage.ts'
import { writeError } from '../ark/errors.ts'
import type { AnswerReading, FrameReading } from '../neutral/call.ts'
import { readConversationStart } from '../openai-chat/conversation-start.ts'
import { readCall as readChat, writeCall } from '../openai-chat/request.ts'
import { readAnswer as readChatAnswer } from '../openai-chat/response.ts'
import { readFrame as readChatFrame } from '../openai-chat/stream.ts'
import { readUsage } from '../openai-chat/usage.ts'
import type { Protocol } from '../protocol.ts'
import { missing } from '../request/checks.ts'
import { formatConversationStart } from '../request/conversation-start.ts'
import { isObject } from '../request/json-body.ts'

const common = { lastEvent: 'data: [DONE]\n\n', writeCall, begins: readConversationStart, writeError } as const

/** A bot adds its own instructions, and what its plug-ins find, so the body does not bound the input. */
export const bots: Protocol = {
  ...common,
  name: 'ark-bots',
  readCall(body) {
    const { media: _some, ...call } = readChat(body)
    return { ...call, dialect: 'ark-bots', textOnly: false, serverTools: true }
  },
  readAnswer(body) {
    const reading = readChatAnswer(body)
    return reading && addBotUsage(reading)
  },
  readFrame(data, earlier) {
    const reading = readChatFrame(data)
    return data?.includes('"bot_usage"') ? markAsUsage(addBotUsage(reading, earlier)) : reading
  },
}

/** A chunk that holds only `bot_usage` counts as a usage chunk. */
const markAsUsage = (reading: FrameReading): FrameReading =>
  reading.kind === 'opening' && reading.usage !== undefined ? { ...reading, kind: 'usage' } : reading

/**
 * Adds up the usage of a bot's models if the bot reports no total, and adds the uses of its plug-ins, which no total
 * contains. `earlier` is the usage that the stream has reported so far.
 */
function addBotUsage<Reading extends AnswerReading>(reading: Reading, earlier: Usage = noUsage): Reading {
  const { json, error } = reading
  const report = isObject(json) && isObject(json.bot_usage) ? json.bot_usage : undefined
  if (report === undefined || error !== undefined) return reading
  const { model_usage: models, action_usage: actions } = report
  const usage = reading.usage ?? (Array.isArray(models) ? sumUsage(models) : undefined)
  const searches = countUses(actions)
  if (searches === 0 || usage === 'nonsense') return { ...reading, usage }
  return { ...reading, usage: { ...(usage ?? earlier), searches } }
}

/**
 * Counts the uses of plug-ins, such as searches of the web, by the field of Ark's answers or that of its SDKs. What is
 * no count is left out, so that the others are still billed.
 */
function countUses(actions: unknown): number {
  let uses = 0
  for (const action of Array.isArray(actions) ? (actions as readonly unknown[]) : []) {
    if (isObject(action)) uses += tokenCount(action.count ?? action.search_count) ?? 0
  }
  return uses
}

function sumUsage(reports: readonly unknown[]): UsageReport | undefined {
  const sum: Record<string, number> = { input: 0, output: 0 }
  for (const report of reports) {
    const usage = readUsage(report)
    if (usage === 'nonsense') return usage
    for (const [name, tokens] of Object.entries(usage ?? {})) sum[name] = (sum[name] ?? 0) + (tokens as number)
  }
  const { input = 0, output = 0, ...rest } = sum
  return input + output > 0 ? { input, output, ...rest } : undefined
}

/** The model also reads the stored context, which is not in the body, so the body does not bound the input. */
export const contextChat: Protocol = {
  ...common,
  name: 'ark-context-chat',
  readCall(body) {
    const { media: _some, ...call } = readChat(body)
    if (typeof call.json.context_id !== 'string') throw missing('context_id')
    return { ...call, dialect: 'ark-context-chat', textOnly: false }
  },
  begins: json => formatConversationStart({ key: json.context_id, system: undefined, first: undefined }),
  readAnswer: readChatAnswer,
  readFrame: readChatFrame,
}
