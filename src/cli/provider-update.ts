// weir providers update: checks a file of newer provider data against the shipped data, and installs it.

import { readFileSync } from 'node:fs'
import { readShippedProviders } from '../boot/load-catalogue.ts'
import { BadProviderData, installProviderData, readProviderData } from '../boot/provider-update.ts'
import { readConfig } from '../config.ts'
import { createFolder } from '../store/engine/folder.ts'
import type { Provider } from '../upstreams/provider.ts'
import { parseProvider } from '../upstreams/provider.ts'
import type { CommandFields } from './connect.ts'
import { Problem } from './problem.ts'

const BYTES_MAX = 32 * 1024 * 1024

export function updateProviders(file: string, sha256: string): CommandFields {
  const shipped = new Map(
    readShippedProviders().map(({ name, text: definition }) => {
      const provider = parseProvider(definition, name)
      return [provider.id, provider] as const
    }),
  )
  try {
    const { providers, unknown, texts } = readProviderData(readBytes(file), sha256, shipped)
    installProviderData(createFolder(readConfig(process.env).dataFolder), texts)
    return { providers: providers.length, ...differences(providers, shipped), unknownProviders: unknown }
  } catch (fault) {
    throw fault instanceof BadProviderData ? new Problem(fault.message) : fault
  }
}

function readBytes(file: string): Uint8Array {
  try {
    const bytes = readFileSync(file === '-' ? 0 : file)
    if (bytes.length > BYTES_MAX) throw new Problem(`The file is larger than ${BYTES_MAX} bytes.`)
    return bytes
  } catch (fault) {
    throw fault instanceof Problem ? fault : new Problem(`The file cannot be read: ${(fault as Error).message}`)
  }
}

/** How many models the data adds, removes, and has with another price than the installed version. */
function differences(providers: readonly Provider[], shipped: ReadonlyMap<string, Provider>): CommandFields {
  let [added, removed, repriced] = [0, 0, 0]
  const priceOf = (price: unknown): string =>
    JSON.stringify(price, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)) ?? ''
  for (const { id, models } of providers) {
    const before = shipped.get(id)!.models
    for (const [model, { price }] of models) {
      const known = before.get(model)
      if (known === undefined) added++
      else if (priceOf(known.price) !== priceOf(price)) repriced++
    }
    removed += [...before.keys()].filter(model => !models.has(model)).length
  }
  return { newModels: added, removedModels: removed, newPrices: repriced }
}
