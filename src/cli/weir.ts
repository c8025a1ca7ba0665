// weir <command>. Each command is a row; what it prints goes to stdout, what went wrong to stderr.

import { parseArgs } from 'node:util'
import { readConfig } from '../config.ts'
import { askControl } from '../http/control-socket.ts'
import { hasData, openFolder } from '../store/folder.ts'
import { serve } from './serve.ts'

interface Row {
  readonly usage: string
  readonly about: string
  run(args: readonly string[]): Promise<void>
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const rows: Readonly<Record<string, Row>> = {
  'serve': {
    usage: 'serve',
    about: 'start the gateway',
    run: () => serve(readConfig(process.env), say),
  },
  'keys create': {
    usage: 'keys create [--tier standard] [--credit 5] [--qpm n] [--name text]',
    about: 'make an API key with an account of its own; prints the key, once',
    async run(args) {
      const text = { type: 'string' } as const
      const { values } = parseArgs({ args: [...args], options: { tier: text, credit: text, qpm: text, name: text } })
      say((await ask('keys-create', values)).key as string)
    },
  },
  'keys revoke': {
    usage: 'keys revoke <key or key id>',
    about: 'refuse the key from now on',
    run: async args => sayFields(await ask('keys-revoke', { key: args[0] })),
  },
  'prices set': {
    usage: "prices set <provider>/<model> '{\"input\":\"2.50\",\"output\":\"10\"}'",
    about: 'price a model otherwise than it is shipped, in USD for a million tokens; as a provider file has it',
    run: async args => sayFields(await ask('prices-set', { model: args[0], price: args[1] })),
  },
  'prices withdraw': {
    usage: 'prices withdraw <provider>/<model>',
    about: 'take a price of your own back, so that the shipped one holds again',
    run: async args => sayFields(await ask('prices-withdraw', { model: args[0] })),
  },
  'balance': {
    usage: 'balance <key or key id>',
    about: "show the balance of a key's account",
    run: async args => sayFields(await ask('balance', { key: args[0] })),
  },
  'prices check': {
    usage: 'prices check',
    about: 'compare the prices of the provider files with public price data; exit code 1 if they disagree',
    async run() {
      const { checkInstalledPrices } = await import('./prices-check.ts')
      process.exitCode = await checkInstalledPrices(readConfig(process.env).providerFolders, say)
    },
  },
  'token': {
    usage: 'token',
    about: 'make a short-lived management token (JWT) for /api/web/*',
    run: async () => say((await ask('token', {})).token as string),
  },
  'setup': {
    usage: 'setup',
    about: 'make a fresh one-time set-up token',
    run: async () => say((await ask('setup', {})).setupToken as string),
  },
}

type Fields = Record<string, unknown>

function sayFields(fields: Fields): void {
  for (const [name, value] of Object.entries(fields)) say(`${name.padEnd(8)} ${String(value)}`)
}

/** A problem that the operator can mend, told in a sentence and without a stack. */
class Problem extends Error {}

/** Asks the running gateway, or opens the data folder when none runs. */
async function ask(command: string, input: Fields): Promise<Fields> {
  const config = readConfig(process.env)
  // From the wrong folder a command would else make data of its own, with keys that the gateway does not know.
  if (process.env.WEIR_DATA === undefined && !hasData(config.dataFolder)) {
    throw new Problem(`There is no data of Weir in ${config.dataFolder}. Start it once, or say where with WEIR_DATA.`)
  }
  const folder = openFolder(config.dataFolder, config.env)
  const answer = (await askControl(folder.socket, command, input)) as Fields | undefined
  if (answer !== undefined) {
    if (typeof answer.problem === 'string') throw new Problem(answer.problem)
    return answer
  }
  const { openStore } = await import('../main.ts')
  const store = await openStore(config)
  try {
    return await store.operator[command]!(input)
  } finally {
    await store.close()
  }
}

function help(): void {
  say('weir <command>\n')
  for (const { usage, about } of Object.values(rows)) say(`  ${usage}\n      ${about}`)
  say('\nSettings come from the environment; .env.example lists them.')
}

async function main(argv: readonly string[]): Promise<void> {
  const name = Object.keys(rows).find(candidate => argv.slice(0, candidate.split(' ').length).join(' ') === candidate)
  if (name === undefined) {
    help()
    process.exitCode = argv.length === 0 || argv[0] === 'help' || argv[0] === '--help' ? 0 : 2
    return
  }
  await rows[name]!.run(argv.slice(name.split(' ').length))
}

/** These say what to do; anything else is a bug and shows where it is. */
const plain = new Set(['ConfigError', 'Problem', 'OperatorError', 'FolderError', 'ProviderFileError', 'StoreError'])

/** parseArgs says what is wrong with the arguments in a TypeError of a code of its own. */
const isAboutArguments = (fault: Error): boolean => 'code' in fault && String(fault.code).startsWith('ERR_PARSE_ARGS')

process.umask(0o077) // whatever is made in the data folder is its owner's alone
main(process.argv.slice(2)).catch((fault: Error) => {
  const told = plain.has(fault.constructor.name) || isAboutArguments(fault)
  process.stderr.write(`weir: ${told ? fault.message : fault.stack}\n`)
  process.exit(1)
})
