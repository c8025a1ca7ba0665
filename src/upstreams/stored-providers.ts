// Reads a provider definition that an operator has configured at run time, in the format of a provider file. Such an
// operator may have fewer rights than the person who sets the environment. So a definition may use environment variables
// only if it replaces a shipped file with the same address, the same variables and the same signing methods.

import type { ProviderSource } from './environment-channels.ts'
import type { Provider } from './provider.ts'
import { ProviderFileError, parseProvider } from './provider.ts'

const SOURCE_NAME = 'the definition'

/** Throws a ProviderFileError. */
export function readStoredProvider(text: string, shipped: ReadonlyMap<string, ProviderSource>): ProviderSource {
  const provider = parseProvider(text, SOURCE_NAME)
  if (provider.builtIn) throw new ProviderFileError(`${SOURCE_NAME}: "builtIn" is allowed only in shipped files`)
  const replaced = shipped.get(provider.id)?.provider
  if (replaced?.builtIn)
    throw new ProviderFileError(`${SOURCE_NAME}: ${provider.id} is built in and cannot be replaced`)
  const hasEnvironment = replaced !== undefined && sharesEnvironment(provider, replaced)
  if (!hasEnvironment && /[{}]/.test(provider.baseUrl)) {
    throw new ProviderFileError(`${SOURCE_NAME}: "baseUrl" may contain only the variables of the shipped file`)
  }
  if (provider.localServer !== undefined && replaced?.localServer === undefined) {
    throw new ProviderFileError(`${SOURCE_NAME}: "localServer" is allowed only where the shipped file has it`)
  }
  return { provider, file: SOURCE_NAME, hasEnvironment }
}

const signingMethods = ({ sign }: Provider): readonly string[] => Object.values(sign)

/** Whether both have the same address and get their keys in the same way. */
export function sharesEnvironment(provider: Provider, replaced: Provider): boolean {
  const names = ['baseUrl', 'keyEnv', 'baseUrlEnv', 'keyless'] as const
  if (names.some(name => provider[name] !== replaced[name])) return false
  return signingMethods(provider).every(method => signingMethods(replaced).includes(method))
}
