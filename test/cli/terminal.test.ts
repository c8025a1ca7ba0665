// Commands in a real terminal: tables fit its width, and long work shows its progress. Through a pipe, nothing is
// shortened and no progress is shown.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readMigrations } from '../../src/store/engine/database.ts'
import { databaseOf } from '../../src/store/engine/folder.ts'
import { writeFirstSchema } from '../crash/first-schema.ts'
import { cleanUp, freshFolder, weir, weirSays } from '../front/weir-process.ts'

const ROOT = join(import.meta.dir, '..', '..')
const WEIR = join(ROOT, 'bin', 'weir')
const COLUMNS = 100

/** What a terminal receives, as lines without their line ends. */
async function inTerminal(folder: string, command: string): Promise<{ code: number; text: string; lines: string[] }> {
  const decoder = new TextDecoder()
  let text = ''
  // The end of the process may be noticed before the last of its output.
  const read = Promise.withResolvers<void>()
  const child = Bun.spawn([WEIR, ...command.split(' ')], {
    env: { PATH: process.env.PATH, WEIR_DATA: folder },
    terminal: {
      cols: COLUMNS,
      rows: 24,
      data: (_, bytes) => void (text += decoder.decode(bytes, { stream: true })),
      exit: () => read.resolve(),
    },
  })
  const code = await child.exited
  await read.promise
  child.terminal!.close()
  return { code, text, lines: text.split('\r\n') }
}

afterAll(cleanUp)

describe('a table', () => {
  const folder = freshFolder()
  const name = 'a-name-that-is-very-long-'.repeat(4)
  let account: string

  beforeAll(async () => {
    await weir(folder, 'keys create --credit 1234.5')
    account = (JSON.parse(await weirSays(folder, `accounts create --name ${name} --json`)) as { id: string }).id
  })

  test('fits the width of the terminal; names are shortened, ids and amounts are not', async () => {
    const { code, lines } = await inTerminal(folder, 'accounts list')
    expect(code).toBe(0)
    expect(lines.filter(line => Bun.stringWidth(line) > COLUMNS)).toEqual([])
    expect(lines.find(line => line.startsWith(account))).toMatch(/ {2}a-name-that-[a-z-]+… {2}team/)
    expect(lines.join('\n')).toContain(' 1234.50')
  })

  test('has its full width in a pipe', async () => {
    expect(await weirSays(folder, 'accounts list')).toContain(`${account}  ${name}  team`)
  })
})

describe('the progress', () => {
  test('of an audit and a backup is shown in a terminal, and erased at the end', async () => {
    const folder = freshFolder()
    await weirSays(folder, 'keys create')
    for (const [command, label] of [
      ['audit', 'reading the ledger …'],
      [`backup ${folder}/copy`, 'copying and auditing …'],
    ] as const) {
      const { code, text } = await inTerminal(folder, command)
      expect(code).toBe(0)
      expect(text).toStartWith(`\r\u001b[2K${label}`)
      expect(text.slice(text.lastIndexOf('\u001b[2K'))).not.toContain('…')
    }
    expect((await weir(folder, 'audit')).stderr).toBe('')
  })

  test('of a migration is shown in a terminal only, and only if there is one', async () => {
    const [shown, piped] = [oldFolder(), oldFolder()]
    const newest = readMigrations().length
    const first = await inTerminal(shown, 'accounts list')
    expect([first.code, first.text]).toEqual([0, expect.stringContaining('upgrading the data …')])
    expect(first.text).toContain(` of ${newest}`)
    expect((await inTerminal(shown, 'accounts list')).text).not.toContain('upgrading')
    expect(await weir(piped, 'accounts list')).toMatchObject({ code: 0, stderr: '' })
  })
})

/** A data folder that the first version of Weir has written. */
function oldFolder(): string {
  const folder = freshFolder()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFirstSchema(databaseOf(folder), ROOT)
  return folder
}
