// Ark's bots and kept contexts, as chats of their own: the body is a chat's, the model is a bot or an endpoint, and the
// answer may say beside its usage what each part of a bot used.

import type { UsageReport } from '../../base/money/usage.ts'
import { writeError } from '../ark/errors.ts'
import type { AnswerReading, FrameReading } from '../neutral/call.ts'
import { begins } from '../openai-chat/begins.ts'
import { readCall as readChat, writeCall } from '../openai-chat/request.ts'
import { readAnswer as readChatAnswer } from '../openai-chat/response.ts'
import { readFrame as readChatFrame } from '../openai-chat/stream.ts'
import { readUsage } from '../openai-chat/usage.ts'
import { parseAnswer } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { missing } from '../request/checks.ts'
import { beginningText } from '../request/conversation-start.ts'
import { isObject } from '../request/json-object.ts'

const base = { lastEvent: 'data: [DONE]\n\n', writeCall, begins, writeError } as const

export const bots: Protocol = {
  ...base,
  name: 'ark-bots',
  readCall: body => ({ ...readChat(body), dialect: 'ark-bots' }),
  readAnswer(body) {
    const reading = readChatAnswer(body)
    return reading && withBotUsage(reading, () => parseAnswer(body))
  },
  readFrame(data) {
    const reading = readChatFrame(data)
    return data?.includes('"bot_usage"') ? asUsage(withBotUsage(reading, () => parseAnswer(data))) : reading
  },
}

/** Usage that is said elsewhere is still nothing but usage. */
const asUsage = (reading: FrameReading): FrameReading =>
  reading.kind === 'opening' && reading.usage !== undefined ? { ...reading, kind: 'usage' } : reading

/** Where a bot does not add up what its models used, we do. */
function withBotUsage<Reading extends AnswerReading>(reading: Reading, parse: () => unknown): Reading {
  if (reading.usage !== undefined || reading.error !== undefined) return reading
  const json = parse()
  const said = isObject(json) && isObject(json.bot_usage) ? json.bot_usage.model_usage : undefined
  return Array.isArray(said) ? { ...reading, usage: sumOf(said) } : reading
}

function sumOf(reports: readonly unknown[]): UsageReport | undefined {
  const sum: Record<string, number> = { input: 0, output: 0 }
  for (const report of reports) {
    const usage = readUsage(report)
    if (usage === 'nonsense') return usage
    for (const [name, tokens] of Object.entries(usage ?? {})) sum[name] = (sum[name] ?? 0) + (tokens as number)
  }
  const { input = 0, output = 0, ...rest } = sum
  return input + output > 0 ? { input, output, ...rest } : undefined
}

/** What the kept context holds is read as well, and is not in the body. */
export const contextChat: Protocol = {
  ...base,
  name: 'ark-context-chat',
  readCall(body) {
    const call = readChat(body)
    if (typeof call.json.context_id !== 'string') throw missing('context_id')
    return { ...call, dialect: 'ark-context-chat', textOnly: false }
  },
  begins: json => beginningText({ key: json.context_id, system: undefined, first: undefined }),
  readAnswer: readChatAnswer,
  readFrame: readChatFrame,
}
