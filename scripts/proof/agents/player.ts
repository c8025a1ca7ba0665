// Plays the model behind an agent: it finds out what the agent can do from the tools that it offers, and works through
// a small task with them, in whatever dialect the request came.
//
//   1. reads the file and lists the folder, both at once     3. runs a command over what it wrote
//   2. changes the file                                      4. says a sentence

import { answer, fail, streamed } from '../../../tools/fake-upstream/answers.ts'
import { objectOf } from '../../../tools/fake-upstream/body-fields.ts'
import type { RequestSummary, ToolCall } from '../../../tools/fake-upstream/dialect.ts'
import { findDialect } from '../../../tools/fake-upstream/dialects.ts'
import type { ReceivedRequest } from '../../../tools/fake-upstream/request.ts'
import type { Script } from '../../../tools/fake-upstream/script.ts'
import { scripted } from '../../../tools/fake-upstream/script.ts'
import { chunkSizes } from '../../../tools/fake-upstream/script-changes.ts'
import { toolUseOf } from './offered.ts'
import type { Toolbox } from './toolbox.ts'
import { callOf, cutCall, toolFor } from './toolbox.ts'

export const task = {
  prompt: 'The status in notes.txt is still draft. Make it final, check the file, and tell me when it is done.',
  before: 'title: the weir\nstatus: draft\nlines: three\n',
  after: 'title: the weir\nstatus: final\nlines: three\n',
  lastWords: ['Done: ', 'the status in notes.txt ', 'is now ', 'final.'],
} as const

/** What the examples of the libraries do: their question needs the tool `weather`. */
export const weather = {
  tool: 'weather',
  city: 'Oslo',
  result: 'It rains in Oslo.',
  lastWords: ['Take ', 'an umbrella.'],
}

export interface Played {
  /** What the player saw and did, a line each. */
  readonly notes: string[]
  /** What should not have been. */
  readonly faults: string[]
  /** Whether it gave opaque state with its calls, to be brought back with their results. */
  sealed: boolean
  /** Whether it came to its last words. */
  ended: boolean
}

/** The player of one run; the file is absolute, as most agents want their paths. */
export function playerOf(file: string): { script: Script; played: Played } {
  const played: Played = { notes: [], faults: [], sealed: false, ended: false }
  const script = scripted(request => turnOf(request, file, played).steps(request))
  // Cut without regard to events and characters.
  return { script: chunkSizes(97)(script), played }
}

function turnOf(request: ReceivedRequest, file: string, played: Played): Script {
  const dialect = findDialect(request)
  const problem = dialect.problem(request)
  if (problem) {
    played.faults.push(`${dialect.name} refuses: ${problem.message}`)
    return fail(problem.status ?? 400, { error: problem })
  }
  const asked = dialect.read(request)
  const { tools, results } = toolUseOf(dialect.name, request)
  const shell = toolFor(tools, 'shell')
  if (tools.some(({ name }) => name === weather.tool)) return tellWeather(asked, played, results)
  if (!shell && JSON.stringify(objectOf(request)).includes('*file listing*')) return listFile(asked, played)
  if (!shell) return aside(asked, played)
  if (played.sealed && asked.stateKept === false) played.faults.push('the state of the reasoning did not come back')
  const change = toolFor(tools, 'edit') ?? shell
  return workOn({ asked, file, played, results, tools: { shell, change, read: toolFor(tools, 'read') ?? shell } })
}

/** Agents ask small things on the side: for a title, or which model to take. */
function aside(asked: RequestSummary, played: Played): Script {
  played.notes.push(`an aside without tools: ${asked.wantsJson ? 'JSON' : 'text'}`)
  return answer(
    asked.wantsJson ? '{"title":"Finish the notes","reasoning":"small","model_choice":"flash"}' : 'Finish notes',
  )
}

function tellWeather(asked: RequestSummary, played: Played, results: readonly string[]): Script {
  played.notes.push(`${results.length} results of ${weather.tool}`)
  const calls = [cutCall('call_weather', weather.tool, { city: weather.city })]
  if (results.length === 0) return speak(asked, ['I look it up.'], { toolCalls: calls })
  if (!results.join().includes(weather.result)) played.faults.push(`no "${weather.result}" in: ${results.join(' | ')}`)
  played.ended = true
  return speak(asked, weather.lastWords, {})
}

/** For an agent without tools, which takes whole files out of the answer. */
function listFile(asked: RequestSummary, played: Played): Script {
  played.notes.push('no tools; lists the file')
  played.ended = true
  return speak(asked, ['notes.txt\n```\n', task.after, '```\n\n', ...task.lastWords], {})
}

interface Work {
  readonly asked: RequestSummary
  readonly file: string
  readonly played: Played
  readonly results: readonly string[]
  readonly tools: Toolbox
}

/** How far the work is, is told by the results alone: the player remembers nothing, like a model. */
function workOn({ asked, file, played, results, tools }: Work): Script {
  const say = (calls: readonly ToolCall[], words: string): Script => {
    played.notes.push(`${results.length} results; calls ${calls.map(call => call.name).join(' and ')}`)
    const { off, text, state } = asked.thinking
    // As the models of the fake upstream do: as much of it as the dialect was asked to show.
    const reasoning = { text: text ? 'Look before you write.' : '', ...(!state && { state: null }) }
    played.sealed ||= !off && state
    return speak(asked, [words], { toolCalls: calls, ...(!off && { reasoning }) })
  }
  const expectIn = (found: readonly string[], part: string): void => {
    if (!found.some(result => result.includes(part))) played.faults.push(`no "${part}" in: ${found.join(' | ')}`)
  }
  if (results.length === 0) {
    const calls = [callOf(tools.read, 'read', file), callOf(tools.shell, 'list', file)]
    return say(calls, 'I look at the file and the folder first.')
  }
  if (results.length === 2) {
    expectIn(results, 'status: draft')
    expectIn(results, 'notes.txt')
    return say([callOf(tools.change, 'change', file)], 'Now I change the status.')
  }
  if (results.length === 3) return say([callOf(tools.shell, 'check', file)], 'I check what is there now.')
  expectIn(results.slice(3), 'status: final')
  played.notes.push(`${results.length} results; says: ${task.lastWords.join('')}`)
  played.ended = true
  return speak(asked, task.lastWords, {})
}

function speak(asked: RequestSummary, words: readonly string[], options: Parameters<typeof answer>[1]): Script {
  return asked.stream ? streamed(words, options) : answer(words.join(''), options)
}
