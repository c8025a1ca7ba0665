// Every provider file by itself, with the keys and addresses that the environment gives it; and all that are well
// together.

import type { ProviderFile } from '../../boot/load-catalogue.ts'
import { providerFolders, readProviderFolder } from '../../boot/load-catalogue.ts'
import type { Config } from '../../config.ts'
import { ConfigError } from '../../config.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import { buildCatalogue } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { ProviderFileError, parseProvider } from '../../upstreams/provider.ts'
import type { Trouble } from './problem.ts'
import { note, problem } from './problem.ts'

export interface CheckedProviders {
  readonly catalogue: Catalogue
  readonly troubles: readonly Trouble[]
}

/** Where built-in providers answer is known only while a gateway runs. */
const UNKNOWN_URL = 'http://127.0.0.1'

export function checkProviders(config: Config, known: Set<string>): CheckedProviders {
  const troubles: Trouble[] = []
  const files = providerFolders(config).flatMap(folder => {
    try {
      return readProviderFolder(folder)
    } catch (fault) {
      if (!(fault instanceof ConfigError)) throw fault
      troubles.push(problem('WEIR_PROVIDERS', fault.message, 'Name folders that this user can read.'))
      return []
    }
  })
  const well = files.filter(file => {
    const found = checkFile(config, file, known)
    troubles.push(...found)
    return found.every(({ weight }) => weight !== 'problem')
  })
  const catalogue = catalogueOf(config, well)
  const isOnlyDemo = catalogue.all().every(({ providerId }) => catalogue.providers.get(providerId)?.builtIn)
  if (isOnlyDemo) {
    const remedy = "Set a key under its vendor's own name, such as those of .env.example."
    troubles.push(note('providers', 'No key of any provider is set: only the demo can be called.', remedy))
  }
  return { catalogue, troubles }
}

function catalogueOf({ env, privateHosts, proxy, demo }: Config, files: readonly ProviderFile[]): Catalogue {
  return buildCatalogue({ files, env, privateHosts, proxy, builtInUrl: demo ? UNKNOWN_URL : undefined })
}

function checkFile(config: Config, file: ProviderFile, known: Set<string>): readonly Trouble[] {
  try {
    const provider = parseProvider(file.text, file.name)
    for (const name of variablesOf(provider)) known.add(name)
    catalogueOf(config, [file])
    return unreachable(provider, config.env)
  } catch (fault) {
    if (!(fault instanceof ProviderFileError)) throw fault
    return [problem(file.name, fault.message, 'Change what it names, or take it away. See docs/providers.md.')]
  }
}

const variablesOf = ({ keyEnv, baseUrlEnv, baseUrl }: Provider): readonly string[] => [
  keyEnv,
  baseUrlEnv,
  ...placesIn(baseUrl),
]

const placesIn = (baseUrl: string): readonly string[] => Array.from(baseUrl.matchAll(/\{(\w+)\}/g), ([, name]) => name!)

/** A key for an address that is not known. */
function unreachable({ keyEnv, baseUrlEnv, baseUrl }: Provider, env: Config['env']): readonly Trouble[] {
  const missing = placesIn(baseUrl).filter(name => !env[name]?.trim())
  if (!env[keyEnv]?.trim() || env[baseUrlEnv]?.trim() || missing.length === 0) return []
  const says = `It is set, but where it is for is not known: ${missing.join(', ')}.`
  return [problem(keyEnv, says, `Set ${missing.join(' and ')}, or ${baseUrlEnv}.`)]
}
