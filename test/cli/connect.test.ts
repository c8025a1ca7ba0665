// weir connect: what it prints, and what it does to the configuration files in a home folder.

import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { cliCommands } from '../../src/cli/commands/commands.ts'
import { programs } from '../../src/cli/programs/programs.ts'
import { setUpLines } from '../../src/cli/programs/set-up-text.ts'
import { cleanUp, freshFolder, serve, stopServed, weir, weirSays } from '../front/weir-process.ts'

const KEY = 'wk-0123456789abcdefghijklmnopqrstuvwxyz'
const URL = 'https://weir.example.com'

afterAll(cleanUp)

const connect = (home: string, args: string, env: Record<string, string> = {}) =>
  weir(home, `connect ${args} --url ${URL}`, { HOME: home, ...env })

const modeOf = (path: string): number => statSync(path).mode & 0o777

/** Without the cache of the runtime. */
const filesIn = (home: string): readonly string[] => readdirSync(home).filter(name => name !== '.bun')

/** Runs a command in this process, which is faster. */
async function connectHere(home: string, args: string, url = `--url ${URL}`): Promise<string> {
  const before = process.env.HOME
  process.env.HOME = home
  const printing = spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    await cliCommands.connect!.run(`${args} ${url}`.trim().split(' '))
    return printing.mock.calls.map(([text]) => String(text)).join('')
  } finally {
    printing.mockRestore()
    process.env.HOME = before
  }
}

function put(path: string, text: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
}

describe('printing', () => {
  test('without a program, every program of the table is listed', async () => {
    const listed = JSON.parse(await weirSays(freshFolder(), 'connect --json')) as { data: { program: string }[] }
    expect(listed.data.map(({ program }) => program)).toEqual(Object.keys(programs))
  })

  test.each(Object.entries(programs))('%s: url, key and model are in the settings', (id, program) => {
    const setUp = program.setUp({ url: URL, key: KEY, model: 'team/coder' })
    const printed = setUpLines({ id, program, setUp, pathOf: ({ names }) => names[0] }).join('\n')
    for (const part of [program.title, URL, KEY, 'team/coder']) expect(printed).toContain(part)
  })

  test('without a key, a placeholder is printed', async () => {
    const home = freshFolder()
    const { code, stdout } = await connect(home, 'claude')
    expect([code, stdout.includes('"ANTHROPIC_AUTH_TOKEN": "wk-…"')]).toEqual([0, true])
    expect(filesIn(home)).toEqual([])
  })

  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['localhost', 'localhost'],
  ])('the address is that of the running gateway, which listens on %s', async (host, name) => {
    const folder = freshFolder()
    const served = await serve(folder, { HOST: host })
    const { port } = new globalThis.URL(served.url)
    const { stdout, stderr } = await weir(folder, 'connect claude-code', { HOME: folder, PORT: '1' })
    expect([/"ANTHROPIC_BASE_URL": "(.*)"/.exec(stdout)?.[1], stderr]).toEqual([`http://${name}:${port}`, ''])
    await weir(folder, `connect aider --write --key ${KEY}`, { HOME: folder, PORT: '1' })
    expect(readFileSync(join(folder, '.aider.conf.yml'), 'utf8')).toContain(`http://${name}:${port}/v1`)
    await stopServed(served)
  })

  test('without a running gateway, the address of the settings is printed with a warning', async () => {
    const folder = freshFolder()
    const { code, stdout, stderr } = await weir(folder, 'connect claude-code', { PORT: '18110' })
    expect([code, stdout.includes('"http://127.0.0.1:18110"')]).toEqual([0, true])
    expect(stderr).toStartWith(`weir: warning: no gateway answers on ${folder}, so the address http://127.0.0.1:18110 `)
  })

  test('with WEIR_TOKEN but without WEIR_URL, no gateway is named', async () => {
    const { code, stderr } = await weir(freshFolder(), 'connect claude-code', { WEIR_TOKEN: 'wt-x' })
    expect([code, stderr]).toEqual([1, expect.stringContaining('Set WEIR_URL, too')])
  })

  test('an address that the files have is kept, and no gateway is asked for another one', async () => {
    const home = freshFolder()
    await connectHere(home, `codex --write --key ${KEY}`)
    const second = await weir(home, `connect codex --write --key ${KEY}`, { HOME: home, WEIR_TOKEN: 'wt-x' })
    expect([second.code, second.stderr]).toEqual([0, ''])
    expect(second.stdout).toContain(`Kept: the url ${URL}`)
  })

  test('a key is not printed into a file that others can read', async () => {
    const home = freshFolder()
    const print = async (name: string, mode: number) => {
      const path = join(home, name)
      put(path, '', mode)
      const child = Bun.spawn([join(import.meta.dir, '../../bin/weir'), 'connect', 'codex', '--key', KEY], {
        env: { PATH: process.env.PATH, HOME: home },
        stdout: openSync(path, 'w'),
        stderr: 'pipe',
      })
      const [code, stderr] = await Promise.all([child.exited, child.stderr.text()])
      return [code, readFileSync(path, 'utf8').includes(KEY), stderr.includes('the key is left out')]
    }
    expect(await print('public', 0o644)).toEqual([0, false, true])
    expect(await print('private', 0o600)).toEqual([0, true, false])
  })

  test.each([
    [`--model local --key ${KEY}`, {}, `--model local --url ${URL} --key wk-… --write`],
    [`--key ${KEY}`, { WEIR_KEY: KEY }, `--url ${URL} --write`],
    [`--key ${KEY}`, { WEIR_KEY: `${KEY}-old` }, `--url ${URL} --key wk-… --write`],
    ['--key -', { STDIN: KEY }, `--url ${URL} --key - --write`],
    ['', {}, `--url ${URL} --write`],
  ])('the command that writes repeats the options %s %p', async (args, env, options) => {
    const { stdout } = await connect(freshFolder(), `claude-code ${args}`.trim(), env as Record<string, string>)
    expect(/weir (connect .*)/.exec(stdout)?.[1]).toBe(`connect claude-code ${options}`)
  })

  test('cursor: a model that the user names is not defined anew', async () => {
    const home = freshFolder()
    const step = 'weir routes set'
    expect((await connect(home, 'cursor')).stdout).toContain(`${step} team-coder `)
    expect((await connect(home, 'cursor --model smart')).stdout).not.toContain(step)
  })

  test.each([
    ['cluade-code', 'Did you mean claude-code?'],
    ['nonsense-of-mine', 'must be one of: claude-code,'],
    ['codex --model a"b', '--model must be the name of a model'],
    ['codex --key a$b', '--key must be an API key'],
    ['codex --url https://x.example/weir', '--url must have no path'],
    ['codex --url https://x.example/?a=b', '--url must have no path'],
    ['codex --wirte', 'Did you mean --write?'],
  ])('weir connect %s is refused', async (args, message) => {
    const { code, stderr } = await weir(freshFolder(), `connect ${args}`)
    expect([code, stderr.includes(message)]).toEqual([2, true])
  })
})

const writable = Object.entries(programs).flatMap(([id, { setUp }]) => {
  const { files = [] } = setUp({ url: URL, key: KEY, model: 'm' })
  return files.length > 0 ? [[id, files] as const] : []
})

describe('writing', () => {
  test.each(writable)(
    '%s: creates the files for their owner alone, and the second time changes nothing',
    async (id, files) => {
      const home = freshFolder()
      const first = await connectHere(home, `${id} --write --key ${KEY}`)
      expect(first).not.toContain(KEY)
      const paths = files.map(({ folder: [, folder], names: [name] }) => join(home, folder, name))
      for (const path of paths) if (readFileSync(path, 'utf8').includes(KEY)) expect(modeOf(path)).toBe(0o600)
      const written = paths.map(path => readFileSync(path, 'utf8'))
      const second = await connectHere(home, `${id} --write --key ${KEY}`)
      expect(second).toContain('No changes.')
      expect(paths.map(path => readFileSync(path, 'utf8'))).toEqual(written)
      expect(paths.some(path => existsSync(`${path}.before-weir`))).toBe(false)
    },
  )

  test('gemini-cli: the files choose the key as the way to sign in, without which the program ends', async () => {
    const home = freshFolder()
    await connectHere(home, `gemini-cli --write --model team/coder --key ${KEY}`)
    expect(JSON.parse(readFileSync(join(home, '.gemini/settings.json'), 'utf8'))).toEqual({
      security: { auth: { selectedType: 'gemini-api-key' } },
      model: { name: 'team/coder' },
    })
    const variables = readFileSync(join(home, '.gemini/.env'), 'utf8')
    expect(variables).toContain(`GOOGLE_GEMINI_BASE_URL=`)
    expect(variables).toContain(KEY)
  })

  test('what the file has is kept, a copy of it stays, and the key makes it private', async () => {
    const home = freshFolder()
    const path = join(home, '.claude/settings.json')
    const old = '{\n  // my own\n  "env": { "ANTHROPIC_AUTH_TOKEN": "sk-ant-secret" },\n  "theme": "dark"\n}\n'
    put(path, old)
    const { code, stdout } = await connect(home, `claude-code --write --key ${KEY}`)
    expect(code).toBe(0)
    expect(stdout).toContain('~ env.ANTHROPIC_AUTH_TOKEN: (hidden) → "wk-…"')
    expect(stdout).not.toContain('sk-ant-secret')
    const now = readFileSync(path, 'utf8')
    for (const part of ['// my own', '"theme": "dark"', KEY]) expect(now).toContain(part)
    expect([modeOf(path), readFileSync(`${path}.before-weir`, 'utf8')]).toEqual([0o600, old])
    expect(modeOf(`${path}.before-weir`)).toBe(0o600)
    await connect(home, `claude-code --write --key ${KEY} --model other`)
    expect(readFileSync(`${path}.before-weir`, 'utf8')).toBe(old)
    expect(readFileSync(`${path}.before-weir-2`, 'utf8')).toBe(now)
  })

  test.each(writable)('%s: a new key changes the key alone', async (id, files) => {
    const home = freshFolder()
    await connectHere(home, `${id} --write --key ${KEY} --model my-model`)
    const paths = files.map(({ folder: [, folder], names: [name] }) => join(home, folder, name))
    // The model for small tasks is chosen by hand.
    const read = (): readonly string[] => paths.map(path => readFileSync(path, 'utf8'))
    const cheap = read().map(text => text.replace(/(HAIKU_MODEL": ")[^"]*/, '$1cheap'))
    paths.forEach((path, at) => {
      writeFileSync(path, cheap[at]!)
    })
    const said = await connectHere(home, `${id} --write --key ${KEY}-new`, '')
    expect(read()).toEqual(cheap.map(text => text.replace(KEY, `${KEY}-new`)))
    expect(said).toContain(`Kept: the url ${URL}, the model my-model.`)
    await connectHere(home, `${id} --write --key ${KEY}-new --model other`, '--url http://127.0.0.1:1')
    expect(read().join('')).toContain('http://127.0.0.1:1')
    for (const old of [URL, 'cheap']) expect(read().join('')).not.toContain(old)
  })

  test('an address of another gateway is not kept, and its password is not printed', async () => {
    const home = freshFolder()
    const path = join(home, '.claude/settings.json')
    put(path, '{"env": {"ANTHROPIC_BASE_URL": "https://me:pass@other.example/?k=v", "ANTHROPIC_AUTH_TOKEN": "sk-1"}}')
    const said = await connectHere(home, `claude-code --write --key ${KEY}`, '')
    expect(said).toContain('ANTHROPIC_BASE_URL: "https://(hidden)other.example/?(hidden)" → "http://127.0.0.1:8080"')
    expect(readFileSync(path, 'utf8')).not.toContain('other.example')
  })

  test.each([
    [
      'claude-code',
      '.claude/settings.json',
      '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}',
      {},
      'env.CLAUDE_CODE_USE_BEDROCK',
    ],
    ['claude-code', '.claude/settings.json', '{}', { CLAUDE_CODE_USE_VERTEX: '1' }, 'env.CLAUDE_CODE_USE_VERTEX'],
    ['claude-code', '.claude/settings.json', '{"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}', {}, undefined],
    ['codex', '.codex/config.toml', 'profile = "work"\n', {}, 'profile'],
  ])('%s: settings that override those of Weir are named (%s %s %p)', async (id, file, content, env, name) => {
    const home = freshFolder()
    put(join(home, file), content)
    const { code, stderr } = await connect(home, `${id} --write --key ${KEY}`, env)
    expect([code, /warning: (\S+) is set/.exec(stderr)?.[1]]).toEqual([0, name])
  })

  test('a file that has the key already and that others can read becomes private', async () => {
    const home = freshFolder()
    await connect(home, `aider --write --key ${KEY}`)
    const path = join(home, '.aider.conf.yml')
    chmodSync(path, 0o644)
    const { stdout } = await connect(home, `aider --write --key ${KEY}`)
    expect([modeOf(path), stdout.includes('readable for you alone')]).toEqual([0o600, true])
  })

  test('the file behind a link is changed, and the link stays', async () => {
    const home = freshFolder()
    put(join(home, 'dotfiles/zed.json'), '{"theme": "One"}')
    mkdirSync(join(home, '.config/zed'), { recursive: true })
    symlinkSync(join(home, 'dotfiles/zed.json'), join(home, '.config/zed/settings.json'))
    expect((await connect(home, 'zed --write')).code).toBe(0)
    expect(readFileSync(join(home, 'dotfiles/zed.json'), 'utf8')).toContain('openai_compatible')
    expect(modeOf(join(home, 'dotfiles/zed.json'))).toBe(0o644)
  })

  test('a link to nothing stays a link', async () => {
    const home = freshFolder()
    mkdirSync(join(home, '.config/zed'), { recursive: true })
    symlinkSync(join(home, 'gone.json'), join(home, '.config/zed/settings.json'))
    const { code, stderr } = await connect(home, 'zed --write')
    expect([code, stderr.includes(`is a link to ${join(home, 'gone.json')}, which does not exist`)]).toEqual([1, true])
    expect(readlinkSync(join(home, '.config/zed/settings.json'))).toBe(join(home, 'gone.json'))
  })

  test.each([
    ['a link into a repository', 'dotfiles', true],
    ['a home folder that is a repository', '.', false],
    ['a folder that is a link into a repository', 'dotfiles', 'folder'],
  ] as const)('a key is not written to %s without a flag', async (_what, repository, link) => {
    const home = freshFolder()
    mkdirSync(join(home, repository, '.git'), { recursive: true })
    const real = join(home, repository, link === false ? '.claude/settings.json' : 'claude/settings.json')
    put(real, '{}\n')
    if (link === 'folder') symlinkSync(dirname(real), join(home, '.claude'))
    else if (link) {
      mkdirSync(join(home, '.claude'))
      symlinkSync(real, join(home, '.claude/settings.json'))
    }
    const { code, stderr } = await connect(home, `claude-code --write --key ${KEY}`)
    expect([code, stderr.includes(`${real} is in the repository ${join(home, repository)}`)]).toEqual([1, true])
    expect([readFileSync(real, 'utf8'), readdirSync(dirname(real))]).toEqual(['{}\n', ['settings.json']])
    const allowed = await connect(home, `claude-code --write --key ${KEY} --into-repository`)
    expect([allowed.code, readFileSync(real, 'utf8').includes(KEY)]).toEqual([0, true])
    expect([allowed.stderr.includes(`must ignore ${real}`), allowed.stdout.includes(real)]).toEqual([true, true])
  })

  test('a new file in a folder that is a link into a repository is found, too', async () => {
    const home = freshFolder()
    mkdirSync(join(home, 'dotfiles/.git'), { recursive: true })
    mkdirSync(join(home, 'dotfiles/codex'))
    symlinkSync(join(home, 'dotfiles/codex'), join(home, '.codex'))
    const { code } = await connect(home, `codex --write --key ${KEY}`)
    expect([code, readdirSync(join(home, 'dotfiles/codex'))]).toEqual([1, []])
  })

  test('settings of Continue in config.json are not hidden by a new config.yaml', async () => {
    const home = freshFolder()
    put(join(home, '.continue/config.json'), '{"models": []}')
    const { code, stderr } = await connect(home, `continue --write --key ${KEY}`)
    expect([code, stderr.includes('a new config.yaml would hide it')]).toEqual([1, true])
    expect(readdirSync(join(home, '.continue'))).toEqual(['config.json'])
    put(join(home, '.continue/config.yaml'), 'name: Mine\nversion: 1.0.0\n')
    expect((await connect(home, `continue --write --key ${KEY}`)).code).toBe(0)
  })

  test('variables of the program move its folder', async () => {
    const home = freshFolder()
    await connect(home, `codex --write --key ${KEY}`, { CODEX_HOME: join(home, 'elsewhere') })
    expect(readdirSync(join(home, 'elsewhere')).sort()).toEqual(['.env', 'config.toml'])
  })

  test('--dry-run prints the changes and writes nothing', async () => {
    const home = freshFolder()
    const { stdout } = await connect(home, `opencode --write --dry-run --key ${KEY}`)
    expect(stdout).toContain('+ provider.weir.npm: "@ai-sdk/openai-compatible"')
    expect([stdout.includes('Nothing was written'), filesIn(home)]).toEqual([true, []])
  })

  test('if one of two files cannot be changed, neither is', async () => {
    const home = freshFolder()
    put(join(home, '.local/share/opencode/auth.json'), '{"weir": "text"}')
    const { code, stderr } = await connect(home, `opencode --write --key ${KEY}`)
    expect([code, stderr.includes('weir in')]).toEqual([1, true])
    expect(existsSync(join(home, '.config'))).toBe(false)
  })

  test.each([
    ['no key', 'codex --write', 2, 'The key is missing'],
    ['a program without files', `cursor --write --key ${KEY}`, 1, 'no configuration file that Weir can write'],
  ])('%s: nothing is written', async (_what, args, exit, message) => {
    const home = freshFolder()
    const { code, stderr } = await connect(home, args)
    expect([code, stderr.includes(message), filesIn(home)]).toEqual([exit, true, []])
  })

  test('a key from standard input is in no list of processes', async () => {
    const home = freshFolder()
    const { code } = await connect(home, 'codex --write --key -', { STDIN: `${KEY}\n` })
    expect([code, readFileSync(join(home, '.codex/.env'), 'utf8')]).toEqual([0, `WEIR_KEY=${KEY}\n`])
  })

  test.each([
    ['Latin-1', Buffer.from('# cl\u00e9\nNAME=Andr\u00e9\n', 'latin1')],
    ['UTF-16 with a mark', Buffer.from('\ufeffNAME=x\n', 'utf16le')],
    ['UTF-16 without a mark', Buffer.from('NAME=x\n', 'utf16le')],
  ])('a file in %s is refused, and stays as it is', async (_what, bytes) => {
    const home = freshFolder()
    put(join(home, '.codex/.env'), bytes)
    const { code, stderr } = await connect(home, `codex --write --key ${KEY}`)
    expect([code, stderr.includes('.env is not UTF-8')]).toEqual([1, true])
    expect(readFileSync(join(home, '.codex/.env'))).toEqual(bytes)
    expect(readdirSync(join(home, '.codex'))).toEqual(['.env'])
  })

  test('a huge file and a folder in its place are refused', async () => {
    const home = freshFolder()
    put(join(home, '.claude/settings.json'), `{"x": "${'y'.repeat(1024 * 1024)}"}`)
    mkdirSync(join(home, '.codex/config.toml'), { recursive: true })
    const huge = await connect(home, `claude-code --write --key ${KEY}`)
    const folder = await connect(home, `codex --write --key ${KEY}`)
    expect([huge.code, huge.stderr.includes('larger than 1 MiB')]).toEqual([1, true])
    expect([folder.code, folder.stderr.includes('is not a file')]).toEqual([1, true])
  })

  test('a link to itself, and a file in place of the folder, are refused in one line', async () => {
    const home = freshFolder()
    mkdirSync(join(home, '.claude'))
    symlinkSync('settings.json', join(home, '.claude/settings.json'))
    put(join(home, '.codex'), 'mine')
    for (const program of ['claude-code', 'codex']) {
      const { code, stderr } = await connect(home, `${program} --write --key ${KEY}`)
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^weir: \S+ cannot be used: .*\n$/)])
    }
    expect(readFileSync(join(home, '.codex'), 'utf8')).toBe('mine')
  })
})
