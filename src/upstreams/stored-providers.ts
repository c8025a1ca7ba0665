// A provider that an operator describes while calls go on, in the words of a provider file. Whoever does that need not
// be who sets the environment, so that nothing of the environment is theirs: only one that goes on from a shipped file
// with the same address and the same kind of keys has the keys that were given for that.

import type { Source } from './environment-channels.ts'
import type { Provider } from './provider.ts'
import { ProviderFileError, parseProvider } from './provider.ts'

const WHERE = 'the definition'

/** Throws a ProviderFileError. */
export function readStoredProvider(text: string, shipped: ReadonlyMap<string, Source>): Source {
  const provider = parseProvider(text, WHERE)
  if (provider.builtIn) throw new ProviderFileError(`${WHERE}: "builtIn" may stand in a file only`)
  const replaced = shipped.get(provider.id)?.provider
  if (replaced?.builtIn) throw new ProviderFileError(`${WHERE}: ${provider.id} is built in`)
  const hasEnvironment = replaced !== undefined && sharesEnvironment(provider, replaced)
  if (!hasEnvironment && /[{}]/.test(provider.baseUrl)) {
    throw new ProviderFileError(`${WHERE}: "baseUrl" may hold variables only as the shipped file has them`)
  }
  return { provider, file: WHERE, hasEnvironment }
}

const waysOf = ({ sign }: Provider): readonly string[] => Object.values(sign)

function sharesEnvironment(provider: Provider, replaced: Provider): boolean {
  const names = ['baseUrl', 'keyEnv', 'baseUrlEnv', 'keyless'] as const
  if (names.some(name => provider[name] !== replaced[name])) return false
  return waysOf(provider).every(way => waysOf(replaced).includes(way))
}
