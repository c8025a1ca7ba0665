// Checks every provider file by itself, with its keys and base URLs from the environment, and then builds a catalogue
// of the valid ones.

import { nearestName } from '../../base/text/nearest-name.ts'
import type { ProviderFile } from '../../boot/load-catalogue.ts'
import { providerFolders, readProviderFolder } from '../../boot/load-catalogue.ts'
import type { Config } from '../../config.ts'
import { ConfigError } from '../../config.ts'
import { checkServerNames } from '../../features/local-servers/local-servers.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import { buildCatalogue } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { ProviderFileError, parseProvider } from '../../upstreams/provider.ts'
import { note, problem } from './findings.ts'

export interface ProviderCheckResult {
  readonly catalogue: Catalogue
  readonly findings: readonly CheckFinding[]
}

/** The real address of built-in providers is known only while a gateway runs. */
const PLACEHOLDER_URL = 'http://127.0.0.1'

export function checkProviders(config: Config, known: Set<string>): ProviderCheckResult {
  const troubles: CheckFinding[] = []
  const files = providerFolders(config).flatMap(folder => {
    try {
      return readProviderFolder(folder)
    } catch (fault) {
      if (!(fault instanceof ConfigError)) throw fault
      troubles.push(problem('WEIR_PROVIDERS', fault.message, 'Set it to folders that this user can read.'))
      return []
    }
  })
  const validFiles = files.filter(file => {
    const findings = checkFile(config, file, known)
    troubles.push(...findings)
    return findings.every(({ weight }) => weight !== 'problem')
  })
  const catalogue = catalogueOf(config, validFiles)
  troubles.push(...checkLocalServers(config, catalogue))
  const isOnlyDemo = catalogue.all().every(({ providerId }) => catalogue.providers.get(providerId)?.builtIn)
  if (isOnlyDemo) {
    const remedy = 'Set the API key of a provider, such as OPENAI_API_KEY. .env.example lists the names.'
    troubles.push(note('providers', 'No API key of a provider is set: callers can only use the demo models.', remedy))
  }
  return { catalogue, findings: troubles }
}

function catalogueOf({ env, privateHosts, proxy, demo }: Config, files: readonly ProviderFile[]): Catalogue {
  return buildCatalogue({ files, env, privateHosts, proxy, builtInUrl: demo ? PLACEHOLDER_URL : undefined })
}

function checkLocalServers({ localServers }: Config, { providers }: Catalogue): readonly CheckFinding[] {
  const { unknown, allowed } = checkServerNames(localServers, providers)
  return unknown.map(name => {
    const near = nearestName(name, allowed)
    const remedy = near === undefined ? `Local servers are ${allowed.join(', ')}.` : `Did you mean ${near}?`
    const message = `It names ${name}, which is no local server. Only the servers that it names are looked for.`
    return problem('WEIR_LOCAL_SERVERS', message, remedy)
  })
}

function checkFile(config: Config, file: ProviderFile, known: Set<string>): readonly CheckFinding[] {
  try {
    const provider = parseProvider(file.text, file.name)
    for (const name of variablesOf(provider)) known.add(name)
    catalogueOf(config, [file])
    return checkBaseUrl(provider, config.env)
  } catch (fault) {
    if (!(fault instanceof ProviderFileError)) throw fault
    const [variable] = /^[A-Z][A-Z0-9_]+(?= )/.exec(fault.message) ?? []
    if (variable !== undefined) return [problem(variable, `${fault.message}.`, `Correct ${variable}, or remove it.`)]
    return [problem(file.name, fault.message, 'Correct the file, or remove it. See docs/reference/providers.md.')]
  }
}

const variablesOf = ({ keyEnv, baseUrlEnv, baseUrl }: Provider): readonly string[] => [
  keyEnv,
  baseUrlEnv,
  ...variablesInUrl(baseUrl),
]

const variablesInUrl = (baseUrl: string): readonly string[] =>
  Array.from(baseUrl.matchAll(/\{(\w+)\}/g), ([, name]) => name!)

/** Reports a key that is set while its base URL lacks a variable. */
function checkBaseUrl({ keyEnv, baseUrlEnv, baseUrl }: Provider, env: Config['env']): readonly CheckFinding[] {
  const missing = variablesInUrl(baseUrl).filter(name => !env[name]?.trim())
  if (!env[keyEnv]?.trim() || env[baseUrlEnv]?.trim() || missing.length === 0) return []
  const message = `It is set, but the base URL is incomplete without ${missing.join(' and ')}.`
  return [problem(keyEnv, message, `Set ${missing.join(' and ')}, or ${baseUrlEnv}.`)]
}
