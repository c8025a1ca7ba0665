// The models of the fake upstream: small, deterministic, and the same in every dialect.
//
//   echo    repeats the last user message            lorem   a fixed paragraph
//   slow    lorem, slowly                            think   reasons, then echoes; says whether its state came back
//   json    {"echo": …} if the request wants JSON    see     lists the images and files in the request
//
// Any other model name works like echo. A token is a word. "use <tool>" in the last message calls that tool, "use a and
// use b" calls both, and a JSON object after the name becomes the arguments. The output of one request is bounded,
// because the demo runs in the gateway's thread.

import type { Choice, Counts, Media, Reply, RequestSummary, ToolCall } from './dialect.ts'
import { countChoiceWords, countWords, cutIntoWords } from './dialect.ts'

const LOREM =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore ' +
  'magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo ' +
  'consequat.'
const THOUGHT = 'Let me think about it.'
/** The `outputTokensMax` of providers/demo.json. */
export const outputWordsMax = 4_096
const CALLS_MAX = 16
const MEDIA_LISTED_MAX = 16

export const modelIds = ['echo', 'lorem', 'slow', 'think', 'json', 'see'] as const

/** Builds the reply to a request, with as many choices as it asks for. */
export function buildReply(asked: RequestSummary, ordinal: number): Reply {
  const choice = chooseAnswer(asked)
  const { reasoning, ...visible } = choice
  // Reasoning costs the same whether it is shown or not.
  const reasoningWords = reasoning ? countWords(THOUGHT) * asked.choices : 0
  const counts: Counts = {
    input: asked.promptWords,
    output: countChoiceWords(visible) * asked.choices + reasoningWords,
    ...(reasoning && { reasoning: reasoningWords }),
  }
  const hasUsage = !asked.stream || asked.wantsUsage
  return {
    ordinal,
    model: asked.model,
    choices: Array.from({ length: asked.choices }, (_, index) => ({ ...choice, index })),
    usage: hasUsage ? counts : undefined,
    wantsUsage: asked.stream && asked.wantsUsage,
  }
}

function chooseAnswer(asked: RequestSummary): Choice {
  const thoughts = asked.model === 'think' && !asked.thinking.off ? reasoningFor(asked) : {}
  const toolCalls = chooseCalls(asked)
  if (toolCalls.length > 0) return { index: 0, ...thoughts, pieces: [], toolCalls, finish: 'tool_calls' }
  return { index: 0, ...thoughts, ...writeText(asked) }
}

/** The reasoning, as much of it as the request wants to see. */
function reasoningFor({ thinking }: RequestSummary): Pick<Choice, 'reasoning'> {
  const text = thinking.text ? THOUGHT : ''
  return { reasoning: { text, ...(!thinking.state && { state: null }) } }
}

function writeText(asked: RequestSummary): Pick<Choice, 'pieces' | 'finish' | 'stopSequence'> {
  const outputMax = Math.min(asked.outputMax ?? outputWordsMax, outputWordsMax)
  const text = chooseText(asked)
  const [stop, at] = firstStop(text, asked.stopSequences)
  const pieces = cutIntoWords(stop === undefined ? text : text.slice(0, at), outputMax + 1)
  // White space at the end is a piece, but not a word.
  if (countWords(pieces.join('')) > outputMax) return { pieces: pieces.slice(0, outputMax), finish: 'length' }
  return { pieces, finish: 'stop', ...(stop !== undefined && { stopSequence: stop }) }
}

const STOPS_MAX = 8

function firstStop(text: string, stops: readonly string[]): readonly [stop: string | undefined, at: number] {
  let found: readonly [string | undefined, number] = [undefined, text.length]
  for (const stop of stops.slice(0, STOPS_MAX)) {
    const at = stop === '' ? -1 : text.indexOf(stop)
    if (at >= 0 && at < found[1]) found = [stop, at]
  }
  return found
}

function chooseText(asked: RequestSummary): string {
  const { model, lastUserText, stateKept } = asked
  if (model === 'lorem' || model === 'slow') return LOREM
  if (model === 'json' && asked.wantsJson) return JSON.stringify({ echo: lastUserText })
  if (model === 'see') return describeMedia(asked.media)
  if (model === 'think' && stateKept !== undefined) return `state ${stateKept ? 'kept' : 'lost'}: ${lastUserText}`
  return lastUserText
}

function describeMedia(media: readonly Media[]): string {
  const describe = ({ type, bytes }: Media) =>
    bytes === undefined ? `${type} at an address` : `${type} of ${bytes} bytes`
  const listed = media.slice(0, MEDIA_LISTED_MAX).map(describe)
  return `I see ${media.length}${listed.length > 0 ? `: ${listed.join(', ')}` : ''}`
}

/** Uses a map, because there may be many tools and many words. */
function chooseCalls(asked: RequestSummary): readonly ToolCall[] {
  if (!asked.lastIsUser && !(asked.mustCall && asked.stateKept === undefined)) return []
  const requests = asked.lastUserText.matchAll(/\buse ([\w-]+)(?: (\{[^{}]*\}))?/g)
  const argumentsByTool = new Map(Array.from(requests, match => [match[1]!, match[2]] as const))
  const requestedTools = [...new Set(asked.tools.filter(name => argumentsByTool.has(name)))]
  const names = requestedTools.length === 0 && asked.mustCall ? asked.tools.slice(0, 1) : requestedTools
  const calls = names.map(name => ({ name, arguments: argumentsFrom(argumentsByTool.get(name)) }))
  return calls.slice(0, asked.parallel ? CALLS_MAX : 1)
}

function argumentsFrom(text: string | undefined): string {
  try {
    if (text === undefined) return '{}'
    JSON.parse(text)
    return text
  } catch {
    return '{}'
  }
}
