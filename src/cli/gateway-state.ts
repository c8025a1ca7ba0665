// Asks the gateway of this machine for its state, over the control socket in its data folder.

import { sendControlRequest } from '../http/server/control-socket.ts'
import type { GatewayState } from '../management/metrics/gateway-state.ts'
import { controlSocketOf } from '../store/engine/folder.ts'

const ANSWER_MS_MAX = 3_000

/** Undefined if no gateway runs on this folder; silent if it does not answer. */
export async function askState(folder: string): Promise<GatewayState | 'silent' | undefined> {
  // The request is aborted, and not only left behind: an open one would keep the command from ending.
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  const answer = await sendControlRequest(controlSocketOf(folder), { method: 'POST', path: '/machine/doctor' }, signal)
    .then(response => response?.json() as Promise<unknown> | undefined)
    .catch(() => 'silent')
  if (answer === undefined || answer === 'silent') return answer
  const { state = null } = answer as { readonly state?: GatewayState | null }
  return state ?? 'silent'
}
