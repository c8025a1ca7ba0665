// The neutral request: what a caller means, in no dialect. Every dialect reads its own requests into it and writes it
// as its own, so that two dialects meet here and nowhere else.
//
// Nothing is in it that no dialect could carry; what one dialect has and no other knows stays `native`, with the name
// of the dialect that knows it.

import type { Effort } from '../../base/money/model-traits.ts'
import type { Sealed } from './reasoning-state.ts'

export interface Conversation {
  /** System turns stand where they stood; results of tools are turns of the role `tool`. */
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly toolChoice?: ToolChoice
  /** False: at most one tool is called at a time. */
  readonly parallelCalls?: boolean
  readonly format?: OutputFormat
  readonly reasoning?: ReasoningWish
  readonly settings: Settings
  /** Fields of the request that nobody else could be told of, by their path in it. Each is a loss. */
  readonly unread: readonly string[]
}

export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool'

export interface Turn {
  readonly role: Role
  readonly name?: string
  readonly parts: readonly Part[]
}

export type Part = TextPart | MediaPart | ReasoningPart | CallPart | ResultPart | RefusalPart | NativePart

/** The prompt up to and with the part that bears it is to be kept by the provider. */
export interface CacheMark {
  readonly ttl?: '5m' | '30m' | '1h' | '12h'
}

interface Markable {
  readonly cache?: CacheMark
}

export interface TextPart extends Markable {
  readonly kind: 'text'
  readonly text: string
  readonly citations?: readonly Citation[]
}

/** An image, a sound, a film or a document. */
export interface MediaPart extends Markable {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  readonly source: Source
  /** How closely an image is to be looked at. */
  readonly detail?: 'auto' | 'low' | 'high' | 'original'
  /** The name of a file, or the title of a document. */
  readonly name?: string
}

export type Source =
  | { readonly at: 'url'; readonly url: string; readonly mime?: string }
  | { readonly at: 'inline'; readonly base64: string; readonly mime: string }
  /** A document that is plain text. */
  | { readonly at: 'text'; readonly text: string; readonly mime: string }
  /** Kept by the provider, whose alone this name is. */
  | { readonly at: 'provider'; readonly id: string; readonly mime?: string }

/** What a model thought. `sealed` is what its provider wants to see again. */
export interface ReasoningPart {
  readonly kind: 'reasoning'
  readonly text: string
  /** A summary, as most providers show, or the thoughts themselves. */
  readonly raw?: boolean
  readonly sealed?: Sealed
}

export interface CallPart extends Markable {
  readonly kind: 'call'
  /** Pairs it with its result. */
  readonly id: string
  readonly name: string
  /** JSON text of an object, as the model wrote it; of a custom tool, free text. */
  readonly arguments: string
  readonly custom?: boolean
  readonly sealed?: Sealed
}

export interface ResultPart extends Markable {
  readonly kind: 'result'
  readonly callId: string
  /** Of the tool; readers that are not told look it up by the call. */
  readonly name?: string
  readonly parts: readonly (TextPart | MediaPart)[]
  readonly failed?: boolean
  readonly custom?: boolean
}

export interface RefusalPart {
  readonly kind: 'refusal'
  readonly text: string
}

/** What only one dialect knows, as it stood there. */
export interface NativePart {
  readonly kind: 'native'
  readonly dialect: string
  /** A short name of what it is, for the list of losses. */
  readonly what: string
  readonly value: unknown
}

export interface Citation {
  readonly url?: string
  readonly title?: string
  readonly citedText?: string
  /** Where in the text, in UTF-16 code units. */
  readonly start?: number
  readonly end?: number
}

export type Tool = FunctionTool | CustomTool | SearchTool | NativeTool

export interface FunctionTool extends Markable {
  readonly kind: 'function'
  readonly name: string
  readonly description?: string
  /** JSON Schema of its arguments; absent for none. */
  readonly schema?: Readonly<Record<string, unknown>>
  readonly strict?: boolean
}

/** Takes free text, maybe of a grammar. */
export interface CustomTool extends Markable {
  readonly kind: 'custom'
  readonly name: string
  readonly description?: string
  readonly grammar?: { readonly syntax: string; readonly definition: string }
}

/** Where the searcher is, roughly. */
export interface Place {
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly zone?: string
}

/** The provider's own search of the web. */
export interface SearchTool extends Markable {
  readonly kind: 'search'
  readonly domains?: readonly string[]
  readonly contextSize?: 'low' | 'medium' | 'high'
  readonly usesMax?: number
  readonly place?: Place
}

export interface NativeTool {
  readonly kind: 'native'
  readonly dialect: string
  readonly what: string
  readonly value: unknown
}

/** `names`: only these; one name and `required` is that one. */
export interface ToolChoice {
  readonly mode: 'auto' | 'none' | 'required'
  readonly names?: readonly string[]
}

export type OutputFormat =
  | { readonly kind: 'json' }
  | {
      readonly kind: 'schema'
      readonly name?: string
      readonly description?: string
      readonly schema: Readonly<Record<string, unknown>>
      readonly strict?: boolean
    }

export interface ReasoningWish {
  /** `none` turns it off. */
  readonly effort?: Effort
  /** In tokens; 0 turns it off. */
  readonly budget?: number
  /** As much as the model likes. */
  readonly adaptive?: boolean
  /** Whether thoughts are to be shown, and how. */
  readonly show?: 'none' | 'auto' | 'concise' | 'detailed'
}

export interface Settings {
  /** The cap on output, with thoughts. */
  readonly outputTokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly choices?: number
  /** So many likely others are told with each token. */
  readonly logprobs?: number
  readonly logitBias?: Readonly<Record<string, number>>
  readonly verbosity?: 'low' | 'medium' | 'high'
  readonly serviceClass?: string
  readonly endUser?: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly cacheKey?: string
  /** All of the prompt, up to its last part that can be. */
  readonly cache?: CacheMark
  readonly stream: boolean
}
