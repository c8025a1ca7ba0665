// docs/reference/settings.md: names, defaults and meanings from .env.example, allowed values from src/config.ts, and the
// variables of providers from their files.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, readConfig } from '../src/config.ts'
import type { Provider } from '../src/upstreams/provider.ts'
import { parseProvider } from '../src/upstreams/provider.ts'

const root = join(import.meta.dir, '..')
const PROVIDERS = 'Providers'

interface Setting {
  readonly name: string
  readonly value: string
  readonly meaning: string
}

interface Section {
  /** A comment that is about all settings of the section. */
  intro: string
  readonly settings: Setting[]
}

/** The sections of .env.example. A setting is a line `# NAME=default`; the comment lines above it are its meaning. */
function readExample(): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>()
  let current: Section = { intro: '', settings: [] }
  let comment: string[] = []
  for (const line of readFileSync(join(root, '.env.example'), 'utf8').split('\n')) {
    const title = /^# --- (.+) ---$/.exec(line)?.[1]
    const [, name, value] = /^# ([A-Z_]+)=(.*)$/.exec(line) ?? []
    if (title === undefined && name === undefined && line !== '') {
      comment.push(line.slice(2))
      continue
    }
    if (title !== undefined) sections.set(title, (current = { intro: '', settings: [] }))
    else if (name !== undefined) current.settings.push({ name, value: value!, meaning: comment.join(' ') })
    else if (comment.length > 0) current.intro = comment.join(' ')
    comment = []
  }
  return sections
}

/** An example that is not the default is shown as no default. */
function defaultText({ name, value }: Setting): string {
  const withExample = { ...readConfig({ [name]: value }), env: {} }
  const isDefault = Bun.deepEquals(withExample, { ...readConfig({}), env: {} })
  return value !== '' && isDefault ? `\`${value}\`` : ''
}

/** The error of the configuration for a value that no setting allows. */
function allowedValues(name: string): string {
  try {
    readConfig({ [name]: '\u0000' })
    return ''
  } catch (fault) {
    if (!(fault instanceof ConfigError)) throw fault
    return /^[A-Z_]+ must be (?:a |an )?(.*?)(?:, separated by commas.*)?\.?$/.exec(fault.message)?.[1] ?? ''
  }
}

const linked = (text: string): string =>
  text.replaceAll('*', '\\*').replaceAll(/\bdocs\/((?:guides|reference)\/[\w-]+\.md)/g, (_path, page: string) => {
    const target = page.startsWith('reference/') ? page.slice('reference/'.length) : `../${page}`
    return `[${page.replace(/^.*\/|\.md$/g, '')}](${target})`
  })

const row = (setting: Setting): string =>
  `| \`${setting.name}\` | ${defaultText(setting)} | ${linked(allowedValues(setting.name))} | ${linked(setting.meaning)} |`

function writeSection(title: string, { intro, settings }: Section): string {
  const own = settings.filter(({ name }) => title !== PROVIDERS || name.startsWith('WEIR_'))
  const head = intro === '' ? '' : `${linked(intro)}\n\n`
  return `## ${title}\n\n${head}| setting | default | allowed | meaning |\n|---|---|---|---|\n${own.map(row).join('\n')}\n`
}

function providerRow({ id, name, keyEnv, baseUrlEnv, baseUrl, keyless }: Provider): string {
  const others = Array.from(baseUrl.matchAll(/\{([A-Z0-9_]+)\}/g), ([, variable]) => `\`${variable}\``)
  return `| \`${id}\` | ${name} | ${keyless ? '' : `\`${keyEnv}\``} | \`${baseUrlEnv}\` | ${others.join(', ')} |`
}

function providers(): string {
  const files = readdirSync(join(root, 'providers')).sort()
  const all = files.map(name => parseProvider(readFileSync(join(root, 'providers', name), 'utf8'), name))
  return all
    .filter(({ builtIn }) => !builtIn)
    .map(providerRow)
    .join('\n')
}

export function writeSettings(): string {
  const sections = Array.from(readExample(), ([title, section]) => writeSection(title, section))
  return `# Settings

Every setting of Weir. Settings are environment variables, and all are optional. Weir and its commands also read them from a
file \`.env\` in the folder in which they are started (\`cp .env.example .env\`); a variable of the environment wins. This page
is generated from \`.env.example\`, \`src/config.ts\` and the provider files (\`npm run docs\`).

\`weir check\` reports invalid values and unknown names without starting the gateway. What can be changed while Weir runs
(limits, model names, channels, tiers, prices) is not a setting: see [rules](../guides/rules.md).

${sections.join('\n')}
## Variables of providers

A provider is available when its key variable is set; one without a key variable, when its address is set. Several keys,
separated by commas, are several channels. The address replaces the whole \`baseUrl\` of the provider file
([providers](providers.md)). Clouds need [more](providers.md#clouds).

| provider | name | key | address | also |
|---|---|---|---|---|
${providers()}
`
}
