// What one model accepts, as far as translation needs to know. The data comes from provider files. An absent trait is
// unknown: then the request goes to the upstream as it is.

export const modalities = ['text', 'image', 'audio', 'file', 'video'] as const
export type Modality = (typeof modalities)[number]

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

/** The thinking budget for each effort, as a share of the cap on output. */
export const BUDGET_SHARE_BY_EFFORT: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 0.95,
}

/** The smallest thinking budget that is sent; providers refuse smaller ones. */
export const THINKING_BUDGET_MIN = 1_024

/**
 * How a request controls the thinking of a model:
 * - `none`: the model does not think
 * - `effort`: by an effort, one of `efforts`
 * - `level`: by one of the words MINIMAL to HIGH
 * - `budget`: by a number of tokens
 * - `adaptive`: the model decides, with an optional effort; it accepts no budget
 * - `either`: `adaptive` or `budget`
 */
export const thinkingModes = ['none', 'effort', 'level', 'budget', 'adaptive', 'either'] as const
export type ThinkingMode = (typeof thinkingModes)[number]

export interface ModelTraits {
  /** The kinds of input that the model accepts. */
  readonly reads?: readonly Modality[]
  readonly thinking?: ThinkingMode
  /**
   * The stream does not contain all of the model's thinking. If absent: the stream contains all of it where the dialect
   * shows unshortened thinking and the stream has some.
   */
  readonly hidesThinking?: boolean
  /** The most tokens a second, to estimate calls that end before their usage is reported. Default 250. */
  readonly tokensPerSecondMax?: number
  /** The most tokens of one generated image, for answers that do not report them. Default 1,290. */
  readonly pictureTokens?: number
  /** Thinking can be turned off. Default true. */
  readonly stopsThinking?: boolean
  /** The efforts that the model accepts. Without any but `none`, only the model decides how much it thinks. */
  readonly efforts?: readonly Effort[]
  /** The lowest and highest thinking budget, in tokens. */
  readonly budgetMin?: number
  readonly budgetMax?: number
  /** The model accepts temperature, top_p and top_k. Default true. */
  readonly sampling?: boolean
  /** The model accepts these only with thinking turned off. Default false. */
  readonly samplingWithoutThinking?: boolean
  /** The model accepts penalties for frequency and presence that are not 0. Default true. */
  readonly penalties?: boolean
  /** A request can force the model to call a tool. Default true. */
  readonly forcedTool?: boolean
  /** A request can constrain the answer by a JSON schema. Default true. */
  readonly schema?: boolean
  /** A request can have a JSON schema and functions together. Default true. */
  readonly schemaWithTools?: boolean
  /**
   * A Gemini request can have functions together with tools that run at the provider, such as a web search. Such a request
   * says so in `toolConfig.includeServerSideToolInvocations`. Default false: most models refuse both together.
   */
  readonly serverToolsWithFunctions?: boolean
  /** The model accepts images and files inside the result of a tool. Default true. */
  readonly richResults?: boolean
  /** The model accepts cache breakpoints in its prompt. Default true. */
  readonly cacheMarks?: boolean
  /** The model can search the web. If absent, it is unknown, and chat upstreams are not asked to search. */
  readonly searches?: boolean
  /** The model accepts system instructions. Default true. */
  readonly system?: boolean
  /** The model goes on with a conversation whose last message is its own. Default true. */
  readonly prefill?: boolean
  /** How many tokens its provider counts for media in a request. */
  readonly mediaTokens?: MediaTokenRules
}

/**
 * The most tokens that a provider counts for media. An absent rule is unknown: then a call with such media may have as
 * many tokens as the model's context.
 */
export interface MediaTokenRules {
  readonly image?: ImageTokenRule
  /** For one second of audio, also of the audio in a video. */
  readonly audioSecond?: number
  /** For one frame of a video. One frame per second counts, or as many as the request asks for. */
  readonly videoFrame?: number
  /** For one page of a PDF. Only where the text on a page adds no tokens: it may be as long as the context. */
  readonly pdfPage?: number
  /** The provider refuses a PDF with more pages. */
  readonly pdfPagesMax?: number
}

/**
 * How the tokens of an image depend on its size:
 * - `fixed`: not at all; `tokens` is the most
 * - `tiles`: the image is scaled to 768 pixels at its shorter side and to at most 2,048 at the longer one; `base`
 *   tokens, and `tile` tokens for each square of 512 pixels; with the detail `low` only `base`
 * - `patches`: `multiplier` tokens (default 1) for each square of `side` pixels, and `base` tokens (default 0); the
 *   image is scaled down to `patchesMax`, with the detail `high` to `highPatchesMax`
 */
export type ImageTokenRule = FixedImageRule | TiledImageRule | PatchedImageRule

export interface FixedImageRule {
  readonly kind: 'fixed'
  readonly tokens: number
}

export interface TiledImageRule {
  readonly kind: 'tiles'
  readonly base: number
  readonly tile: number
}

export interface PatchedImageRule {
  readonly kind: 'patches'
  readonly side: number
  readonly patchesMax: number
  readonly highPatchesMax?: number
  readonly multiplier?: number
  readonly base?: number
}

export const noTraits: ModelTraits = {}

/** The default of `tokensPerSecondMax`. Most models that think are slower. */
export const tokensPerSecondDefault = 250
