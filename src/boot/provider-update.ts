// Newer provider data than that of the installed version: one file with the contents of provider files, which an operator
// installs. It is kept in the data folder, for this version of Weir only: a later version ships its own data.

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import type { Provider } from '../upstreams/provider.ts'
import { ProviderFileError, parseProvider } from '../upstreams/provider.ts'
import { sharesEnvironment } from '../upstreams/stored-providers.ts'

const { version } = packageJson
const FORMAT = 1

/** The data cannot be installed; the message says why. */
export class BadProviderData extends Error {}

const updatesOf = (dataFolder: string): string => join(dataFolder, 'providers')
const folderFor = (dataFolder: string): string => join(updatesOf(dataFolder), version)

/** The folder of the installed data; none if nothing was installed for this version. */
export const updateFolders = (dataFolder: string): readonly string[] =>
  existsSync(folderFor(dataFolder)) ? [folderFor(dataFolder)] : []

export interface ProviderUpdate {
  readonly providers: readonly Provider[]
  /** Providers that this version does not have. They are left out. */
  readonly unknown: readonly string[]
}

/**
 * Reads and checks the data. It may change models and prices of shipped providers, but not where they are and how they
 * get their keys: a file from elsewhere must not send a key to another address.
 */
export function readProviderData(
  bytes: Uint8Array,
  sha256: string,
  shipped: ReadonlyMap<string, Provider>,
): ProviderUpdate & { readonly texts: ReadonlyMap<string, string> } {
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (!/^[0-9a-f]{64}$/i.test(sha256)) throw new BadProviderData('--sha256 must be 64 hexadecimal digits.')
  if (digest !== sha256.toLowerCase()) {
    throw new BadProviderData(`The checksum of the file is ${digest}, not the expected one. Nothing was changed.`)
  }
  const [providers, unknown, texts]: [Provider[], string[], Map<string, string>] = [[], [], new Map()]
  for (const entry of entriesOf(bytes)) {
    const text = JSON.stringify(entry, null, 1)
    const provider = parseOrFail(text, texts.size + 1)
    const replaced = shipped.get(provider.id)
    if (replaced === undefined || replaced.builtIn) {
      unknown.push(provider.id)
      continue
    }
    const isLocal = (one: Provider): boolean => one.localServer !== undefined
    if (!sharesEnvironment(provider, replaced) || provider.builtIn || isLocal(provider) !== isLocal(replaced)) {
      throw new BadProviderData(
        `${provider.id} has another address, other variables or another way to sign than in this version. ` +
          'Install a newer version of Weir instead. Nothing was changed.',
      )
    }
    if (texts.has(provider.id)) throw new BadProviderData(`${provider.id} is there twice. Nothing was changed.`)
    providers.push(provider)
    texts.set(provider.id, text)
  }
  return { providers, unknown, texts }
}

function entriesOf(bytes: Uint8Array): readonly unknown[] {
  let json: unknown
  try {
    json = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    throw new BadProviderData('The file is not valid JSON.')
  }
  const { format, providers } = (json ?? {}) as { format?: unknown; providers?: unknown }
  if (format !== FORMAT || !Array.isArray(providers) || providers.length === 0) {
    throw new BadProviderData(`The file must have "format": ${FORMAT} and a list "providers".`)
  }
  return providers
}

function parseOrFail(text: string, position: number): Provider {
  try {
    return parseProvider(text, `provider ${position} of the file`)
  } catch (fault) {
    throw fault instanceof ProviderFileError ? new BadProviderData(`${fault.message}. Nothing was changed.`) : fault
  }
}

/** Replaces what was installed before. If the process dies meanwhile, the old data or that of the version is used. */
export function installProviderData(dataFolder: string, texts: ReadonlyMap<string, string>): void {
  const target = folderFor(dataFolder)
  const fresh = `${target}.new`
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh, { recursive: true, mode: 0o700 })
  for (const [id, text] of texts) writeFileSync(join(fresh, `${id}.json`), text, { mode: 0o600 })
  rmSync(target, { recursive: true, force: true })
  renameSync(fresh, target)
}
