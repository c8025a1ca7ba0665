// Reads the shipped provider files and those of the operator's folders, and builds the catalogue from them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
import type { Catalogue, CatalogueParts } from '../upstreams/catalogue.ts'
import { buildCatalogue } from '../upstreams/catalogue.ts'
import { updateFolders } from './provider-update.ts'

const SHIPPED_PROVIDERS = join(import.meta.dir, '..', '..', 'providers')

export type ProviderFile = CatalogueParts['files'][number]

/** A provider in a later folder replaces one with the same id. */
export const providerFolders = (config: Pick<Config, 'dataFolder' | 'providerFolders'>): readonly string[] => [
  SHIPPED_PROVIDERS,
  ...updateFolders(config.dataFolder),
  ...config.providerFolders,
]

export function readProviderFolder(folder: string): readonly ProviderFile[] {
  try {
    const names = readdirSync(folder)
      .filter(name => name.endsWith('.json'))
      .sort()
    return names.map(name => ({ name: join(folder, name), text: readFileSync(join(folder, name), 'utf8') }))
  } catch (fault) {
    throw new ConfigError(`The provider folder ${folder} cannot be read: ${(fault as Error).message}`)
  }
}

export const readShippedProviders = (): readonly ProviderFile[] => readProviderFolder(SHIPPED_PROVIDERS)

export function readCatalogue(
  config: Config,
  builtInUrl: string | undefined,
  parts: Pick<CatalogueParts, 'signing' | 'parse'> = {},
): Catalogue {
  const files = providerFolders(config).flatMap(readProviderFolder)
  const { env, privateHosts, proxy } = config
  return buildCatalogue({ files, env, builtInUrl, privateHosts, proxy, ...parts })
}

export const readProviderFile = (file: string): string => readFileSync(file, 'utf8')
