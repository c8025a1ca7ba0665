// Reads the output of strace: one line for each system call of any thread. Some calls are in two halves.

export interface SystemCall {
  readonly name: string
  /** The path of the file, or both ends of the connection. */
  readonly target: string
  /** The bytes as strace shows them, with its escapes. */
  readonly data: string
  readonly ok: boolean
  readonly startS: number
  readonly endS: number
}

const WHOLE = /^(\d+) +(\d+\.\d+) (\w+)\((.*)\) += (-?\d+|\?)[^<]*(?:<(\d+\.\d+)>)?$/
const FIRST_HALF = /^(\d+) +(\d+\.\d+) (\w+)\((.*) <unfinished \.\.\.>$/
const SECOND_HALF = /^(\d+) +(\d+\.\d+) <\.\.\. (\w+) resumed>(.*)\) += (-?\d+|\?)[^<]*(?:<(\d+\.\d+)>)?$/
const TARGET = /^\d+<(.*?)>(?:, |$)/
const DATA = /"((?:[^"\\]|\\.)*)"/g

/** In the order in which they began. */
export function readTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = []
  const begun = new Map<string, { name: string; args: string; startS: number }>()
  for (const line of text.split('\n')) {
    const half = FIRST_HALF.exec(line)
    if (half !== null) {
      begun.set(half[1]!, { name: half[3]!, args: half[4]!, startS: Number(half[2]) })
      continue
    }
    const rest = SECOND_HALF.exec(line)
    const first = rest === null ? undefined : begun.get(rest[1]!)
    if (rest !== null && first !== undefined) {
      begun.delete(rest[1]!)
      const endS = first.startS + Number(rest[6] ?? 0)
      calls.push(callOf({ ...first, args: first.args + rest[4]!, result: rest[5]!, endS }))
      continue
    }
    const whole = WHOLE.exec(line)
    if (whole === null) continue
    const startS = Number(whole[2])
    const endS = startS + Number(whole[6] ?? 0)
    calls.push(callOf({ name: whole[3]!, args: whole[4]!, result: whole[5]!, startS, endS }))
  }
  return calls.sort((one, other) => one.startS - other.startS)
}

interface Parsed {
  readonly name: string
  readonly args: string
  readonly result: string
  readonly startS: number
  readonly endS: number
}

function callOf({ name, args, result, startS, endS }: Parsed): SystemCall {
  const target = TARGET.exec(args)?.[1] ?? ''
  const data = Array.from(args.matchAll(DATA), match => match[1]!).join('')
  return { name, target, data, ok: Number(result) >= 0, startS, endS }
}
