// The types of the vault (stored responses, reasoning state, files, references, tasks) and of its operations. Each row
// belongs to the account that created it.

import type { MeanVariance } from '../../base/collections/mean-variance.ts'

/** The account and the id of a row. A row is found only with its own account. */
export interface VaultId {
  readonly accountId: number
  readonly id: string
}

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

export interface ResponseFacts extends VaultId {
  readonly keyId: number
  readonly status: ResponseStatus
  /** `<provider>/<model>`. */
  readonly model: string
  /** The channel that made the response; null where it does not matter. */
  readonly channel: string | null
  /** The id of the response at an upstream that stores it too. */
  readonly upstreamId: string | null
  readonly previousId: string | null
  readonly createdMs: number
}

export type TaskStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired'

export interface TaskFacts extends VaultId {
  /** The call that created the task. Hold and record of the task have the same id. */
  readonly callId: number
  readonly keyId: number
  readonly provider: string
  readonly model: string
  readonly channel: string
  /** JSON: the data for the bill and the record of the task. It has no content of the caller. */
  readonly admitted: string
  readonly createdMs: number
  /** The call was admitted again before it was held: the task that it has written gets these terms. */
  readonly isAgain?: boolean
}

export interface TaskChange {
  readonly callId: number
  readonly status: TaskStatus
  /** When the task is polled again; null: it has ended and is settled, and does not change any more. */
  readonly dueMs: number | null
  readonly updatedMs: number
  readonly polledMs?: number | null
  readonly upstreamId?: string | null
  /** The new id of the task for its caller. */
  readonly id?: string | null
  /** The channel that created the task, if it is not the planned one. */
  readonly channel?: string | null
}

/** Encrypted bytes, as base64. */
type SealedText = string

export interface VaultOperations {
  /** Stores a response. It replaces a response with the same id. */
  keepResponse: {
    input: ResponseFacts & { readonly expiresMs: number; readonly sealed: SealedText | null }
    result: { done: 'kept' }
  }
  /** Changes a response that has not ended. */
  changeResponse: {
    input: VaultId & { readonly status: ResponseStatus; readonly sealed: SealedText | null }
    result: { done: 'changed' | 'over' | 'unknown' }
  }
  dropResponse: { input: VaultId; result: { done: 'dropped' | 'unknown' } }
  /** Stores the reasoning state of a tool call. It replaces an older one. */
  keepReasoning: {
    input: VaultId & { readonly expiresMs: number; readonly sealed: SealedText }
    result: { done: 'kept' }
  }
  keepFile: {
    input: VaultId & { readonly channel: string; readonly expiresMs: number; readonly bytes: number }
    result: { done: 'kept' }
  }
  /** Stores references with their channel. Each id begins with its kind and a colon. The newest channel counts. */
  keepReferences: {
    input: {
      readonly accountId: number
      readonly ids: readonly string[]
      readonly channel: string
      readonly expiresMs: number
    }
    result: { done: 'kept' }
  }
  dropFile: { input: VaultId; result: { done: 'dropped' | 'unknown' } }
  createTask: {
    input: TaskFacts & { readonly dueMs: number; readonly expiresMs: number }
    result: { done: 'created' | 'exists' | 'too_many' }
  }
  changeTask: {
    input: TaskChange & { readonly sealed: SealedText | null }
    result: { done: 'changed' | 'over' | 'unknown' }
  }
  /** Deletes a task that has ended. An open task stays, because its hold needs it. */
  dropTask: { input: VaultId; result: { done: 'dropped' | 'under_way' | 'unknown' } }
  learnFactors: {
    input: { readonly factors: readonly (MeanVariance & { readonly model: string })[] }
    result: { done: 'learned' }
  }
  /** Deletes some of the expired rows. */
  forgetKept: { input: { readonly nowMs: number }; result: { done: 'forgotten'; count: number } }
}
