// The neutral conversation: a request in no particular dialect. Each dialect reads its requests into it and writes its
// requests from it, so no dialect needs to know another one.
//
// Something that only one dialect has is a `native` part or tool, with the name of that dialect.

import type { Effort } from '../../base/money/model-traits.ts'
import type { ReasoningState } from './reasoning-state.ts'

export interface Conversation {
  /** System messages keep their positions. Results of tools are messages with the role `tool`. */
  readonly messages: readonly ConversationMessage[]
  readonly tools: readonly Tool[]
  readonly toolChoice?: ToolChoice
  /** False: the model may call only one tool at a time. */
  readonly parallelCalls?: boolean
  readonly format?: OutputFormat
  /** The caller's dialect has OpenAI's rules for strict schemas. Otherwise it has others. */
  readonly followsStrictRules?: boolean
  readonly reasoning?: ReasoningOptions
  readonly settings: GenerationSettings
  /** Paths of request fields that no other dialect can carry. Each one is a loss. */
  readonly lostFields: readonly string[]
}

export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool'

export interface ConversationMessage {
  readonly role: Role
  readonly name?: string
  readonly parts: readonly ConversationPart[]
}

export type ConversationPart = TextPart | MediaPart | ReasoningPart | CallPart | ResultPart | RefusalPart | NativePart

/** Asks the provider to cache the prompt up to and including the part that has the breakpoint. */
export interface CacheBreakpoint {
  readonly ttl?: '5m' | '30m' | '1h' | '12h'
}

interface Cacheable {
  readonly cache?: CacheBreakpoint
}

export interface TextPart extends Cacheable {
  readonly kind: 'text'
  readonly text: string
  readonly citations?: readonly Citation[]
}

/** An image, audio, a video or a document. */
export interface MediaPart extends Cacheable {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  readonly source: MediaSource
  /** The resolution at which the model sees an image or the pages of a file. */
  readonly detail?: 'auto' | 'low' | 'high' | 'original'
  /** The name of a file, or the title of a document. */
  readonly name?: string
}

export type MediaSource =
  | { readonly at: 'url'; readonly url: string; readonly mime?: string }
  | { readonly at: 'inline'; readonly base64: string; readonly mime: string }
  /** A plain-text document. */
  | { readonly at: 'text'; readonly text: string; readonly mime: string }
  /** A file that is stored at a provider. Other providers do not know the id. */
  | { readonly at: 'provider'; readonly id: string; readonly mime?: string }

/** Thoughts of the model, with the reasoning state that the provider wants to get back. */
export interface ReasoningPart {
  readonly kind: 'reasoning'
  readonly text: string
  /** True: the thoughts themselves. Otherwise a summary, which is what most providers show. */
  readonly raw?: boolean
  readonly sealed?: ReasoningState
}

export interface CallPart extends Cacheable {
  readonly kind: 'call'
  /** The result of the call has the same id. */
  readonly id: string
  readonly name: string
  /** Only in answers of an upstream that has namespaces. Names of tools in requests need none. */
  readonly namespace?: string
  /** An object as JSON text, as the model wrote it. Free text for a custom tool. */
  readonly arguments: string
  readonly custom?: boolean
  readonly sealed?: ReasoningState
}

export interface ResultPart extends Cacheable {
  readonly kind: 'result'
  readonly callId: string
  /** The name of the tool. If the request leaves it out, the reader takes it from the call. */
  readonly name?: string
  readonly parts: readonly (TextPart | MediaPart)[]
  readonly failed?: boolean
  readonly custom?: boolean
}

export interface RefusalPart {
  readonly kind: 'refusal'
  readonly text: string
}

/** Content that only one dialect has, unchanged. */
export interface NativePart {
  readonly kind: 'native'
  readonly dialect: string
  /** Names the content in the list of losses. */
  readonly what: string
  readonly value: unknown
}

export interface Citation {
  readonly url?: string
  readonly title?: string
  /** Words of the source, not of the answer. */
  readonly citedText?: string
  /** The range in the text, in UTF-16 code units. */
  readonly start?: number
  readonly end?: number
}

export type Tool = FunctionTool | CustomTool | SearchTool | NativeTool

export interface FunctionTool extends Cacheable {
  readonly kind: 'function'
  readonly name: string
  readonly description?: string
  /** The JSON Schema of the arguments. Absent: the tool has no arguments. */
  readonly schema?: Readonly<Record<string, unknown>>
  /** The model is held to the schema. */
  readonly strict?: boolean
}

/** A tool whose input is free text, or text that follows a grammar. */
export interface CustomTool extends Cacheable {
  readonly kind: 'custom'
  readonly name: string
  readonly description?: string
  readonly grammar?: { readonly syntax: string; readonly definition: string }
}

/** The approximate location of the user, for a web search. */
export interface SearchLocation {
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly zone?: string
}

/** The provider's own web search. */
export interface SearchTool extends Cacheable {
  readonly kind: 'search'
  readonly domains?: readonly string[]
  readonly contextSize?: 'low' | 'medium' | 'high'
  readonly usesMax?: number
  readonly location?: SearchLocation
}

export interface NativeTool {
  readonly kind: 'native'
  readonly dialect: string
  readonly what: string
  readonly value: unknown
}

/** `names`: only these tools may be called. `required` with one name forces that tool. */
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
      /** The model is held to the schema. */
      readonly strict?: boolean
    }

export interface ReasoningOptions {
  /** `none` switches thinking off. */
  readonly effort?: Effort
  /** In tokens. 0 switches thinking off. */
  readonly budget?: number
  /** The model decides how much it thinks. */
  readonly adaptive?: boolean
  /** Whether and how the answer shows the thoughts. */
  readonly show?: 'none' | 'auto' | 'concise' | 'detailed'
}

export interface GenerationSettings {
  /** The cap on output tokens, including thoughts. */
  readonly outputTokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly choices?: number
  /** How many alternatives to list for each token. */
  readonly logprobs?: number
  readonly logitBias?: Readonly<Record<string, number>>
  readonly verbosity?: 'low' | 'medium' | 'high'
  readonly serviceClass?: string
  readonly endUser?: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly cacheKey?: string
  /** Asks the provider to cache the whole prompt. `breakpoints`: it may cache only up to the breakpoints, if any. */
  readonly cache?: CacheBreakpoint | 'breakpoints'
  readonly stream: boolean
}
