// What is kept between calls for the account that made it: the operations of the writer on it, and its rows.

import type { Spread } from '../../base/collections/mean-variance.ts'

/** Whose it is, and its name there: another account's is not found. */
export interface KeptId {
  readonly accountId: number
  readonly id: string
}

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

export interface ResponseFacts extends KeptId {
  readonly keyId: number
  readonly status: ResponseStatus
  /** `<provider>/<model>`. */
  readonly model: string
  /** Where it was made; null where that is no matter. */
  readonly channel: string | null
  /** Its name at the upstream that keeps it, too. */
  readonly upstreamId: string | null
  readonly previousId: string | null
  readonly createdMs: number
}

export type TaskStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired'

export interface TaskFacts extends KeptId {
  /** Of the call that began it: its hold's, and its record's. */
  readonly callId: number
  readonly keyId: number
  readonly provider: string
  readonly model: string
  readonly channel: string
  /** JSON: what its bill rests on, and what its record will say. None of its caller's words. */
  readonly admitted: string
  readonly createdMs: number
}

export interface TaskChange {
  readonly callId: number
  readonly status: TaskStatus
  /** When it is to be looked at again; null: it is over and settled, and does not change any more. */
  readonly dueMs: number | null
  readonly updatedMs: number
  readonly polledMs?: number | null
  readonly upstreamId?: string | null
  /** The name by which its caller asks for it from now on. */
  readonly id?: string | null
  /** Where it was begun, if not where it was to be. */
  readonly channel?: string | null
}

/** Bytes that a seal has closed, as base64. */
type SealedText = string

export interface KeptOperations {
  /** The newest of a name counts. */
  keepResponse: {
    input: ResponseFacts & { readonly expiresMs: number; readonly sealed: SealedText | null }
    result: { done: 'kept' }
  }
  /** Of one that is not over. */
  changeResponse: {
    input: KeptId & { readonly status: ResponseStatus; readonly sealed: SealedText | null }
    result: { done: 'changed' | 'over' | 'unknown' }
  }
  dropResponse: { input: KeptId; result: { done: 'dropped' | 'unknown' } }
  /** The newest of a tool call counts. */
  keepReasoning: {
    input: KeptId & { readonly expiresMs: number; readonly sealed: SealedText }
    result: { done: 'kept' }
  }
  keepFile: {
    input: KeptId & { readonly channel: string; readonly expiresMs: number; readonly bytes: number }
    result: { done: 'kept' }
  }
  /** Each `id` begins with its kind and a colon. The newest channel counts. */
  keepReferences: {
    input: {
      readonly accountId: number
      readonly ids: readonly string[]
      readonly channel: string
      readonly expiresMs: number
    }
    result: { done: 'kept' }
  }
  dropFile: { input: KeptId; result: { done: 'dropped' | 'unknown' } }
  createTask: {
    input: TaskFacts & { readonly dueMs: number; readonly expiresMs: number }
    result: { done: 'created' | 'exists' | 'too_many' }
  }
  changeTask: {
    input: TaskChange & { readonly sealed: SealedText | null }
    result: { done: 'changed' | 'over' | 'unknown' }
  }
  /** Only one that is over: a hold must not lose its task. */
  dropTask: { input: KeptId; result: { done: 'dropped' | 'under_way' | 'unknown' } }
  learnFactors: {
    input: { readonly factors: readonly (Spread & { readonly model: string })[] }
    result: { done: 'learned' }
  }
  /** What has had its time, some at a time. */
  forgetKept: { input: { readonly nowMs: number }; result: { done: 'forgotten'; count: number } }
}
