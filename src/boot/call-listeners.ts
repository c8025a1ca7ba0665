// Passes each finished or refused call to the metrics and to the access log, if there are any.

import type { CallSummary } from '../base/call-summary.ts'
import { buildLog } from '../base/log.ts'
import type { Config } from '../config.ts'
import type { AccessLog } from '../management/metrics/access-log.ts'
import { buildAccessLog } from '../management/metrics/access-log.ts'
import type { CallMetrics } from '../management/metrics/call-metrics.ts'
import { earlyRefusalStage } from '../pipeline/lifetime/summarize-call.ts'
import type { RefusedRequest } from '../server/refusal-response.ts'
import type { Runtime } from './runtime.ts'

/** One log line for each call, if the access log is on or the log level is debug. */
export function accessLog({ accessLog: isOn, logLevel }: Config, { writeLog }: Pick<Runtime, 'writeLog'>) {
  if (isOn) return buildAccessLog(buildLog('info', writeLog).info)
  return logLevel === 'debug' ? buildAccessLog(buildLog('debug', writeLog).debug) : undefined
}

export function watchCalls(counts: CallMetrics | undefined, access: AccessLog | undefined) {
  if (counts === undefined && access === undefined) return { onEnd: undefined, onRefused: undefined }
  function onEnd(call: CallSummary): void {
    counts?.ended(call)
    access?.ended(call)
  }
  function onRefused({ requestId, status, code, dialect }: RefusedRequest): void {
    const stage = earlyRefusalStage(code)
    if (dialect !== undefined) {
      const error = { code, stage }
      return onEnd({ requestId, dialect, status, outcome: 'refused', error, attempts: [], durationMs: 0 })
    }
    counts?.refused(stage, code)
    access?.refused({ requestId, status, code, stage })
  }
  return { onEnd, onRefused }
}
