// Recognises that a request is longer than the model's context. Agents then shorten the conversation and try again, but
// each dialect says it in another way, so the error of one dialect means nothing to an agent of another.

import type { UpstreamError } from './errors.ts'

/** The code of OpenAI's dialects. */
export const OVERFLOW_CODE = 'context_length_exceeded'

/** Error codes and types that say it. */
const CODES: readonly string[] = [
  OVERFLOW_CODE,
  'context_window_exceeded',
  'model_context_window_exceeded',
  'exceed_context_size_error',
]

/** Sentences that say it, in lower case. Most upstreams have no code for it. */
const SENTENCES: readonly RegExp[] = [
  /prompt is too long/, // Anthropic
  /exceed context limit/, // Anthropic: the prompt together with max_tokens
  /maximum context length/, // OpenAI, vLLM and most of those that imitate OpenAI
  /exceeds the context window/, // OpenAI's Responses
  /input tokens exceed the configured limit/, // OpenAI
  /input token count.{0,40} exceeds the maximum number of tokens/, // Google
  /exceed max message tokens/, // Ark
  /input is too long for requested model/, // Amazon Bedrock
  /maximum prompt length is/, // xAI
  /reduce the length of the messages/, // Groq, Cerebras
  /exceeded model token limit/, // Moonshot
  /longer than the model's context length/, // Together
  /context window exceeds limit/, // MiniMax
  /range of input length should be/, // Qwen
  /prompt exceeds max length/, // Zhipu
  /exceeds the available context size/, // llama.cpp
  /prompt token count of \d{1,12} exceeds/, // GitHub Copilot
]

/** A cap on output that is too large: a shorter conversation would not help. */
const CAP_TOO_LARGE = /^['"`]?max_(?:completion_|output_)?tokens\b/

/** Only the start of a message counts: the rest may quote the caller's own text. */
const READ_CHARS_MAX = 400

export function isContextOverflow({ code, type, message }: Omit<UpstreamError, 'status'>): boolean {
  if ([code, type].some(name => name !== undefined && CODES.includes(name))) return true
  const start = message.slice(0, READ_CHARS_MAX).toLowerCase()
  return !CAP_TOO_LARGE.test(start) && SENTENCES.some(sentence => sentence.test(start))
}

/**
 * The error that a caller of another dialect gets: the names of the upstream's dialect mean nothing there, except that
 * the context is too long, which each dialect can say.
 */
export function forOtherDialect({ status, message, ...names }: UpstreamError): UpstreamError {
  return { status, message, ...(isContextOverflow({ message, ...names }) && { overflow: true }) }
}
