// People from the command line: the first owner, and new passwords. Passwords come from standard input, not arguments.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Served } from '../front/weir-process.ts'
import { cleanUp, freshFolder, serve, stopServed, weir, weirSays } from '../front/weir-process.ts'
import { askAs } from '../support/management.ts'
import { personOf, signIn } from '../support/people.ts'

const folder = freshFolder()
let served: Served

beforeAll(async () => {
  served = await serve(folder)
})
afterAll(cleanUp)

const signInAsOlga = (password: string) => signIn(served, { email: 'olga@example.com', password })
const stdinOf = (text: string) => ({ STDIN: `${text}\nnot this line\n` })

describe('weir setup', () => {
  test('keeps the printed set-up token valid when it fails', async () => {
    const token = /Set-up token[^\n]*\s([A-Za-z0-9_-]{22})\n/.exec(served.said())![1]!
    const isGood = async (): Promise<boolean> => {
      // The endpoint checks the password only after it has accepted the token.
      const body = { token, name: 'Olga', email: 'olga@example.com', password: 'aaaaaaaaaaaa' }
      const answer = await askAs(served, undefined)('POST', 'auth/setup', body)
      return answer.status === 400
    }
    expect(await isGood()).toBe(true)
    for (const [command, words] of [
      ['setup --email olga@example.com', 'short'],
      ['setup --email olga', 'a river'],
    ]) {
      expect((await weir(folder, command!, stdinOf(words!))).code).toBe(1)
    }
    expect((await weir(folder, 'setup', { STDIN: '' })).code).toBe(2)
    expect(await isGood()).toBe(true)
  })

  test('creates the owner with the password from standard input', async () => {
    const weak = await weir(folder, 'setup --email olga@example.com', stdinOf('short'))
    expect([weak.code, weak.stdout]).toEqual([1, ''])
    expect(weak.stderr).toContain('The password cannot be used. It must have 10 to 200 characters.')
    const none = await weir(folder, 'setup --email olga@example.com', { STDIN: '' })
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('Send the password on standard input')])
    const wrong = await weir(folder, 'setup --email olga', stdinOf('a river of words'))
    expect([wrong.code, wrong.stderr]).toEqual([
      1,
      'weir: --email must be an email address such as name@example.com.\n',
    ])
    const output = await weirSays(folder, 'setup --email Olga@example.com --name Olga', stdinOf('a river of words'))
    expect(output).toMatch(/^owner +usr_\w{11}\nemail +olga@example\.com$/)
    const { body } = await personOf(served, await signInAsOlga('a river of words')).ask('GET', 'web/me')
    expect(body).toMatchObject({ name: 'Olga', role: 'owner', accounts: [{ name: 'first key', role: 'manager' }] })
  })

  test('is refused if there is an owner already', async () => {
    for (const command of ['setup', 'setup --token', 'setup --email other@example.com']) {
      const { code, stdout, stderr } = await weir(folder, command, stdinOf('another river'))
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain('There is an owner already. To set a new password: weir users reset-password')
    }
  })
})

describe('weir users', () => {
  test('lists people', async () => {
    const { data } = JSON.parse(await weirSays(folder, 'users list --json')) as { data: object[] }
    expect(data).toMatchObject([{ email: 'olga@example.com', role: 'owner', disabled: false, secondFactor: false }])
    expect(await weirSays(folder, 'users list')).toContain('olga@example.com')
  })

  test('resets a password, also while no gateway runs', async () => {
    const before = personOf(served, await signInAsOlga('a river of words'))
    await weirSays(folder, 'users reset-password olga@example.com', stdinOf('a lake of words'))
    expect((await before.ask('GET', 'web/me')).status).toBe(401)
    expect([(await signInAsOlga('a river of words')).status, (await signInAsOlga('a lake of words')).status]).toEqual([
      401, 200,
    ])
    expect(await stopServed(served)).toBe(0)
    await weirSays(folder, 'users reset-password Olga@Example.com', stdinOf('a sea of words'))
    served = await serve(folder)
    expect(served.said()).toBe(`Weir is listening on ${served.url}\n`)
    expect((await signInAsOlga('a sea of words')).status).toBe(200)
  })

  test('does not remove the last owner, and checks emails and roles', async () => {
    for (const command of ['users disable olga@example.com', 'users role olga@example.com member']) {
      const { code, stderr } = await weir(folder, command)
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('There must be an owner. Make somebody else an owner first.'),
      ])
    }
    const renamed = await weir(folder, 'users email olga@example.com olga')
    const must = 'weir: <email> is not valid: it must be an email address such as name@example.com.\n'
    expect([renamed.code, renamed.stderr]).toEqual([1, must])
    expect((await weir(folder, 'users role olga@example.com king')).stderr).toContain(
      '<role> must be one of: member, support, admin, owner.',
    )
    expect((await weir(folder, 'users role nobody@example.com member')).stderr).toContain(
      'There is no person with this email address or id',
    )
  })
})

test('weir token prints a token of the operator, also when there is an owner', async () => {
  const ask = askAs(served, await weirSays(folder, 'token'))
  expect((await ask('GET', 'web/me')).body).toMatchObject({ id: null, name: 'operator', role: 'owner' })
  expect((await ask('GET', 'web/users')).status).toBe(200)
})
