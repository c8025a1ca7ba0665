// The provider behind the gateway: the fake upstream, which logs every request that reached it and what it answered. It
// runs in the process of the harness, which is not killed.

import { estimateTextBytes } from '../../src/protocols/usage/text-bytes.ts'
import { jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Reply } from '../../tools/fake-upstream/dialect.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import { chatWire } from '../../tools/fake-upstream/openai-chat/wire.ts'
import type { ReceivedRequest } from '../../tools/fake-upstream/request.ts'
import { isRecord, readJson } from '../../tools/fake-upstream/request.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { chunk, end, scripted, wait } from '../../tools/fake-upstream/script.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { EventLog } from './event-log.ts'
import type { CallPlan, Shares } from './plan.ts'
import { planOfTag } from './plan.ts'

export const MODEL = 'gpt-4o-mini'

/** Logs `seen` when a request has arrived, `piece` before each piece is sent, `said` before the usage is sent. */
export async function startUpstream(seed: number, log: EventLog, shares?: Shares): Promise<FakeUpstream> {
  const upstream = await startFakeUpstream({ keepRequests: 0 })
  upstream.planModel(MODEL, answerByPlan(seed, log, shares))
  return upstream
}

export function answerByPlan(seed: number, log: EventLog, shares?: Shares): Script {
  return scripted(function* steps(request): Iterable<Step> {
    const body = readJson(request.body)
    const tag = isRecord(body) && typeof body.user === 'string' ? body.user : ''
    const plan = planOfTag(seed, tag, shares)
    if (plan === undefined) throw new Error(`no plan for a call tagged "${tag}"`)
    log.write({ kind: 'seen', tag })
    if (plan.firstMs > 0) yield wait(plan.firstMs)
    if (plan.fails) {
      log.write({ kind: 'refused', tag })
      yield* jsonAnswer(503, chatWire.error({ message: 'Not today.', type: 'server_error' }))
    } else if (isRecord(body) && body.stream === true) yield* streamed(plan, request, log)
    else {
      log.write({ kind: 'said', tag, usage: plan.usage })
      yield* jsonAnswer(200, chatWire.plain(replyOf(plan, request)))
    }
  })
}

function* streamed(plan: CallPlan, request: ReceivedRequest, log: EventLog): Iterable<Step> {
  yield streamHead
  let [sent, chars] = [0, 0]
  for (const frame of chatWire.frames(replyOf(plan, request))) {
    // Logged before it is sent, so that the log has everything that a caller can know.
    if (frame.kind === 'piece') {
      if (plan.pieceMs > 0) yield wait(plan.pieceMs)
      chars += estimateTextBytes(plan.pieces[sent++]!)
      log.write({ kind: 'piece', tag: plan.tag, chars })
    }
    if (frame.kind === 'usage') log.write({ kind: 'said', tag: plan.tag, usage: plan.usage })
    yield chunk(formatEvent(frame))
  }
  yield end
}

function replyOf(plan: CallPlan, request: ReceivedRequest): Reply {
  const { input, cached, output } = plan.usage
  return {
    ordinal: request.ordinal,
    model: MODEL,
    choices: [{ index: 0, pieces: plan.pieces, finish: 'stop' }],
    usage: { input, output, cached },
    wantsUsage: true,
  }
}
