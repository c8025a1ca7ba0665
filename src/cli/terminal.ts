// Asks the user at the terminal. A secret is not shown while it is typed, and it is never an argument, because every
// process can read arguments.

import { Problem, UsageProblem } from './problem.ts'

const ENTER = new Set(['\r', '\n'])
const LINE_CHARACTERS_MAX = 4 * 1024

export const isTerminal = (): boolean => process.stdin.isTTY === true

export async function askLine(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await lines.question(`${question}: `)).trim()
  } finally {
    lines.close()
  }
}

/** Asks for a new password: twice at a terminal, else it reads the first line of standard input. */
export async function askNewPassword(question: string): Promise<string> {
  if (!isTerminal()) return await firstLine()
  const typed = await askHidden(question)
  if (typed !== (await askHidden(`${question}, again`))) throw new Problem('The two passwords are not the same.')
  return typed
}

/** Asks for an existing password, once. */
export const askCurrentPassword = (question: string): Promise<string> =>
  isTerminal() ? askHidden(question) : firstLine()

async function firstLine(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += String(chunk)
    if (text.includes('\n') || text.length > LINE_CHARACTERS_MAX) break
  }
  const [line = ''] = text.split('\n')
  if (line.trim() === '')
    throw new UsageProblem('Send the password on standard input, or run the command in a terminal.')
  return line.replace(/\r$/, '')
}

async function askHidden(question: string): Promise<string> {
  const { stdin, stderr } = process
  stderr.write(`${question}: `)
  stdin.setRawMode(true)
  stdin.resume()
  stdin.setEncoding('utf8')
  try {
    return await new Promise((resolve, reject) => {
      let typed: readonly string[] = []
      function read(chunk: string): void {
        for (const character of chunk) {
          if (ENTER.has(character)) return end(() => resolve(typed.join('')))
          if (character === '\u0003') return end(() => reject(new Problem('Cancelled.')))
          typed = character === '\u007f' || character === '\b' ? typed.slice(0, -1) : [...typed, character]
        }
      }
      function end(done: () => void): void {
        stdin.off('data', read)
        done()
      }
      stdin.on('data', read)
    })
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}
