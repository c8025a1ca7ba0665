// The models of the fake upstream: small, deterministic, and the same in every dialect.
//
//   echo    repeats the last user message        lorem   a fixed paragraph
//   slow    lorem, taking its time               think   reasons, then echoes; says whether its state came back
//   json    {"echo": …} where JSON was asked     see     says which pictures and files it was given
//
// Any other model is as echo. A token is a word. "use <tool>" in the last message calls that tool, "use a and use b"
// both at once, and a JSON object behind the name is given to it. What one request can make them say is bounded,
// because as the demo they share the gateway's thread.

import type { Asked, Choice, Counts, Media, Reply, ToolCall } from './dialect.ts'
import { countWords, cutIntoWords, wordsOf } from './dialect.ts'

const LOREM =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore ' +
  'magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo ' +
  'consequat.'
const THOUGHT = 'Let me think about it.'
/** The `outputTokensMax` of providers/demo.json. */
export const outputWordsMax = 4_096
const callsMax = 16
const mediaTold = 16

export const modelIds = ['echo', 'lorem', 'slow', 'think', 'json', 'see'] as const

/** The answer to what was asked, in as many choices. */
export function replyOf(asked: Asked, ordinal: number): Reply {
  const choice = chooseAnswer(asked)
  const { reasoning, ...said } = choice
  // Thinking costs as much when it is not shown.
  const thought = reasoning ? countWords(THOUGHT) * asked.choices : 0
  const counts: Counts = {
    input: asked.promptWords,
    output: wordsOf(said) * asked.choices + thought,
    ...(reasoning && { reasoning: thought }),
  }
  const told = !asked.stream || asked.usageAsked
  return {
    ordinal,
    model: asked.model,
    choices: Array.from({ length: asked.choices }, (_, index) => ({ ...choice, index })),
    usage: told ? counts : undefined,
    usageAsked: asked.stream && asked.usageAsked,
  }
}

function chooseAnswer(asked: Asked): Choice {
  const thoughts = asked.model === 'think' && !asked.thinking.off ? reasoningFor(asked) : {}
  const toolCalls = callsWanted(asked)
  if (toolCalls.length > 0) return { index: 0, ...thoughts, pieces: [], toolCalls, finish: 'tool_calls' }
  return { index: 0, ...thoughts, ...speak(asked) }
}

/** As much of it as the dialect was asked to show. */
function reasoningFor({ thinking }: Asked): Pick<Choice, 'reasoning'> {
  const text = thinking.text ? THOUGHT : ''
  return { reasoning: { text, ...(!thinking.state && { state: null }) } }
}

function speak(asked: Asked): Pick<Choice, 'pieces' | 'finish' | 'stopped'> {
  const outputMax = Math.min(asked.outputMax ?? outputWordsMax, outputWordsMax)
  const text = textFor(asked)
  const [stop, at] = firstStop(text, asked.stops)
  const pieces = cutIntoWords(stop === undefined ? text : text.slice(0, at), outputMax + 1)
  // White space at the end is a piece and no word.
  if (countWords(pieces.join('')) > outputMax) return { pieces: pieces.slice(0, outputMax), finish: 'length' }
  return { pieces, finish: 'stop', ...(stop !== undefined && { stopped: stop }) }
}

const stopsMax = 8

function firstStop(text: string, stops: readonly string[]): readonly [stop: string | undefined, at: number] {
  let found: readonly [string | undefined, number] = [undefined, text.length]
  for (const stop of stops.slice(0, stopsMax)) {
    const at = stop === '' ? -1 : text.indexOf(stop)
    if (at >= 0 && at < found[1]) found = [stop, at]
  }
  return found
}

function textFor(asked: Asked): string {
  const { model, lastUserText, stateKept } = asked
  if (model === 'lorem' || model === 'slow') return LOREM
  if (model === 'json' && asked.json) return JSON.stringify({ echo: lastUserText })
  if (model === 'see') return whatIsSeen(asked.media)
  if (model === 'think' && stateKept !== undefined) return `state ${stateKept ? 'kept' : 'lost'}: ${lastUserText}`
  return lastUserText
}

function whatIsSeen(media: readonly Media[]): string {
  const one = ({ type, bytes }: Media) => (bytes === undefined ? `${type} at an address` : `${type} of ${bytes} bytes`)
  const told = media.slice(0, mediaTold).map(one)
  return `I see ${media.length}${told.length > 0 ? `: ${told.join(', ')}` : ''}`
}

/** By a map, because both the tools and the words can be many. */
function callsWanted(asked: Asked): readonly ToolCall[] {
  if (!asked.lastIsUser && !(asked.mustCall && asked.stateKept === undefined)) return []
  const spoken = asked.lastUserText.matchAll(/\buse ([\w-]+)(?: (\{[^{}]*\}))?/g)
  const wanted = new Map(Array.from(spoken, match => [match[1]!, match[2]] as const))
  const named = [...new Set(asked.tools.filter(name => wanted.has(name)))]
  const names = named.length === 0 && asked.mustCall ? asked.tools.slice(0, 1) : named
  const calls = names.map(name => ({ name, arguments: argumentsFrom(wanted.get(name)) }))
  return calls.slice(0, asked.parallel ? callsMax : 1)
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
