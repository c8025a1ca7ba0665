// Finds the address of the gateway that weir connect points a program at.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../../config.ts'
import { askState } from '../gateway-state.ts'
import { text } from '../input.ts'
import { UsageProblem } from '../problem.ts'
import { isRemote, parseOrigin, remoteUrlMissing, warnIfUnencrypted } from '../remote.ts'

export interface GatewayAddress {
  readonly url: string
  /** Why the address may be wrong. */
  readonly doubt?: string
}

/** The gateway that the user names, or else the one of this machine. */
export async function gatewayAddress(given: unknown): Promise<GatewayAddress> {
  const named = given ?? process.env.WEIR_URL?.trim()
  if (named === undefined || named === '') return await localAddress()
  const url = parseOrigin(named)
  const { pathname, search, hash } = new URL(text(named))
  if (!/^\/(v1\/?)?$/.test(pathname) || search !== '' || hash !== '') {
    throw new UsageProblem(
      `${given === undefined ? 'WEIR_URL' : '--url'} must have no path, such as https://weir.example.com: programs ` +
        'call /v1 and other paths below it. Give Weir a host name of its own.',
    )
  }
  warnIfUnencrypted(url)
  return { url }
}

/** The running gateway says where it listens: this shell may have other settings than the one that started it. */
async function localAddress(): Promise<GatewayAddress> {
  if (isRemote()) throw remoteUrlMissing()
  const { host, port, dataFolder } = readConfig(process.env)
  const folder = resolve(dataFolder)
  const state = existsSync(folder) ? await askState(folder) : undefined
  if (typeof state === 'object') return { url: callable(state.url) }
  const url = callable(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  return { url, doubt: `no gateway answers on ${folder}, so the address ${url} is only that of HOST and PORT` }
}

/** A gateway that listens on all addresses is called at this one. */
const callable = (url: string): string => url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1')
