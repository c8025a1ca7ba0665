// What one model takes, as far as a translation must know. Data of provider files; all absent means: unknown, and then
// the upstream is asked and not second-guessed.

export const modalities = ['text', 'image', 'audio', 'file', 'video'] as const
export type Modality = (typeof modalities)[number]

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

/**
 * How a model is told to think before it answers:
 * - `none`: it does not
 * - `effort`: by a word
 * - `level`: by one of the words MINIMAL to HIGH
 * - `budget`: by a number of tokens
 * - `adaptive`: it decides itself, by a word if one is given, and takes no budget
 * - `either`: `adaptive` or `budget`
 */
export const thinkingWays = ['none', 'effort', 'level', 'budget', 'adaptive', 'either'] as const
export type ThinkingWay = (typeof thinkingWays)[number]

export interface Traits {
  /** What it reads. */
  readonly reads?: readonly Modality[]
  readonly thinking?: ThinkingWay
  /**
   * Its stream does not show all that it thinks. Absent: it does where its dialect shows thoughts as they are and the
   * stream has some.
   */
  readonly hidesThinking?: boolean
  /** The most tokens that it writes or thinks in a second, for calls that are cut before they are told. Default 250. */
  readonly tokensPerSecondMax?: number
  /** The most tokens that a picture of its is, for answers that do not report it. Default 1,290. */
  readonly pictureTokens?: number
  /** Its thinking can be turned off. Default true. */
  readonly stopsThinking?: boolean
  /** The words of effort that it knows. */
  readonly efforts?: readonly Effort[]
  /** The least and the most of a budget. */
  readonly budgetMin?: number
  readonly budgetMax?: number
  /** Takes temperature, top_p and top_k. Default true. */
  readonly sampling?: boolean
  /** Takes them only with its thinking turned off. Default false. */
  readonly samplingWithoutThinking?: boolean
  /** Can be made to call a tool. Default true. */
  readonly forcedTool?: boolean
  /** Can be held to a JSON schema. Default true. */
  readonly schema?: boolean
  /** Can be held to a schema and given functions at once. Default true. */
  readonly schemaWithTools?: boolean
  /** Reads images and files inside the result of a tool. Default true. */
  readonly richResults?: boolean
  /** Takes marks of where its prompt cache is to be cut. Default true. */
  readonly cacheMarks?: boolean
  /** Searches the web by itself, if asked; absent: unknown, and chat upstreams are not asked. */
  readonly searches?: boolean
  /** Has a place for instructions. Default true. */
  readonly system?: boolean
}

export const noTraits: Traits = {}

/** Most models that think are slower. */
export const tokensPerSecondDefault = 250
