// What a running gateway knows of itself, of the facts that `weir doctor` collects: its state, the recent records, the
// processes that share its database, the last backup. It examines neither the network nor the files of the machine.

import type { ProcessList } from '../../store/engine/store-engine.ts'
import type { LedgerInspection } from '../../store/ledger/inspect-tables.ts'
import type { DoctorFacts } from '../doctor/doctor-checks.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { GatewayState } from '../metrics/gateway-state.ts'

/** Reading the recent records is expensive, so requests within this time get the same facts. */
const KEPT_MS = 30_000

export interface CollectedFacts extends DoctorFacts {
  readonly state: GatewayState
  readonly processes: ProcessList | undefined
}

/** Collects the facts of a gateway that runs; undefined if none runs. */
export function buildGatewayFacts(parts: ManagementParts): () => Promise<CollectedFacts | undefined> {
  const { queryWorker, storage, dateMs, nowMs } = parts
  let kept: { readonly fromMs: number; readonly facts: Promise<LedgerInspection> } | undefined
  const inspect = (): Promise<LedgerInspection> => {
    if (kept === undefined || nowMs() - kept.fromMs > KEPT_MS) {
      const facts = queryWorker.query('ledgerInspection', { dateMs: dateMs() })
      kept = { fromMs: nowMs(), facts }
      // The next request asks again.
      facts.catch(() => {
        kept = undefined
      })
    }
    return kept.facts
  }
  return async () => {
    const state = await parts.state()
    if (state === undefined) return undefined
    const sentMs = dateMs()
    const processes = await storage.list()
    const aheadMs = processes === undefined ? 0 : (sentMs + dateMs()) / 2 - processes.nowMs
    const { members = [] } = processes ?? {}
    return {
      dateMs: dateMs(),
      folder: storage.folder,
      hasData: true,
      state,
      processes,
      readyStatus: state.ready ? 200 : 503,
      books: { schema: 0, schemaKnown: 0, details: await inspect() },
      shared: processes && { findings: [], isEmpty: false, members, aheadMs },
      lastBackupMs: storage.lastBackupMs(),
      logBytes: storage.logBytes(),
      // Whoever asks is answered by this process, which does not call itself.
      isMetricsReachable: true,
      folderFindings: [],
      addressFindings: [],
    }
  }
}
