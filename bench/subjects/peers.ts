// Other gateways, which are measured beside Weir if their programs are in a folder (`npm run bench -- --peers
// <folder>`). One row says how each is started and called, so that readers can repeat or correct a comparison. Every
// peer has the smallest configuration with which it forwards a call, which is to its advantage.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import type { Manner } from '../load/calls.ts'
import type { Child } from '../system/workbench.ts'
import { read, SUBJECT_CORE, until } from '../system/workbench.ts'
import { signInToNewApi } from './new-api.ts'
import type { Setting, Subject, SubjectDuties } from './subject.ts'

/** The files and ports of one start of a peer. */
export interface PeerStart {
  /** The program. */
  readonly file: string
  /** The home of the peer, where it writes its files. Empty at first. */
  readonly folder: string
  readonly port: number
  /** For peers that need several ports. */
  readonly otherPorts: readonly [number, number, number]
  /** http://127.0.0.1:…, without a path. */
  readonly upstream: string
}

export interface Peer extends SubjectDuties {
  readonly name: string
  /** Paths in the folder of --peers. The first one that exists is the program. */
  readonly files: readonly string[]
  /** The version with which this row was tested. Undefined if the row was written from documentation only. */
  readonly tried?: string
  version?(file: string): readonly string[]
  command(start: PeerStart): readonly string[]
  env?(start: PeerStart): Readonly<Record<string, string>>
  config?(start: PeerStart): { readonly name: string; readonly text: string }
  /** A path that a ready peer answers with a status below 500. */
  readonly ready: string
  /** Creates a key, for peers that need one. */
  key?(start: PeerStart): Promise<string>
  readonly path: string
  readonly model: string
  headers?(start: PeerStart): Readonly<Record<string, string>>
  /** The share of the calls of a plan. */
  readonly share: number
}

const CHAT = '/v1/chat/completions'
const MODEL = 'gpt-4o-mini'
const none = { bills: 'no', records: 'no', durable: 'nothing to lose' } as const

function bifrost(name: string, withLogs: boolean, duties: SubjectDuties): Peer {
  return {
    name,
    ...duties,
    files: ['bifrost-http'],
    command: ({ file, folder, port }) => [
      ...[file, '-app-dir', folder, '-host', '127.0.0.1', '-port', String(port), '-log-level', 'error'],
    ],
    config: ({ folder, upstream }) => ({
      name: 'config.json',
      text: JSON.stringify({
        client: { enable_logging: withLogs, drop_excess_requests: false },
        providers: {
          openai: {
            keys: [{ name: 'bench', value: 'upstream', models: ['*'], weight: 1 }],
            network_config: { base_url: upstream, default_request_timeout_in_seconds: 60 },
          },
        },
        config_store: { enabled: false },
        logs_store: withLogs
          ? { enabled: true, type: 'sqlite', config: { path: join(folder, 'logs.db') } }
          : { enabled: false },
      }),
    }),
    ready: '/health',
    path: CHAT,
    model: `openai/${MODEL}`,
    share: 0.5,
  }
}

export const peers: readonly Peer[] = [
  bifrost('bifrost', false, none),
  bifrost('bifrost, with logs', true, { ...none, records: 'every call', durable: 'written later, in batches' }),
  {
    name: 'gomodel',
    ...none,
    files: ['gomodel'],
    command: ({ file }) => [file],
    env: ({ folder, port, upstream }) => ({
      PORT: String(port),
      OPENAI_API_KEY: 'upstream',
      OPENAI_BASE_URL: `${upstream}/v1`,
      OPENAI_MODELS: MODEL,
      CONFIGURED_PROVIDER_MODELS_MODE: 'allowlist',
      GOMODEL_OFFLINE: 'true',
      MODEL_LIST_URL: 'off',
      LOGGING_ENABLED: 'false',
      USAGE_ENABLED: 'false',
      LOG_LEVEL: 'error',
      SQLITE_PATH: join(folder, 'gomodel.db'),
      GOMODEL_CACHE_DIR: join(folder, 'cache'),
    }),
    ready: '/health',
    path: CHAT,
    model: MODEL,
    share: 0.5,
  },
  {
    name: 'new-api',
    bills: 'every call; no hold for a user with more than ten dollars',
    records: 'every call',
    durable: 'SQLite as it comes',
    files: ['new-api'],
    version: file => [file, '--version'],
    command: ({ file, folder, port }) => [file, '--port', String(port), '--log-dir', join(folder, 'logs')],
    env: ({ folder }) => ({
      SESSION_SECRET: 'a secret of the benchmark',
      SQLITE_PATH: join(folder, 'new-api.db?_busy_timeout=30000'),
      GIN_MODE: 'release',
      MEMORY_CACHE_ENABLED: 'true',
    }),
    ready: '/api/status',
    key: ({ port, upstream }) => signInToNewApi({ port, upstream, model: MODEL }),
    path: CHAT,
    model: MODEL,
    share: 0.1,
  },
  {
    name: 'portkey',
    ...none,
    files: ['node_modules/@portkey-ai/gateway/build/start-server.js'],
    tried: '1.15.2, plain calls; on Node 20 its streams end with status 500',
    version: file => ['node', '-p', `require(${JSON.stringify(join(dirname(file), '..', 'package.json'))}).version`],
    command: ({ file, port }) => ['node', file, '--headless', `--port=${port}`],
    env: () => ({ NODE_ENV: 'production' }),
    ready: '/',
    path: CHAT,
    model: MODEL,
    headers: ({ upstream }) => ({ 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/v1` }),
    share: 0.2,
  },
  {
    name: 'litellm',
    ...none,
    files: ['litellm/bin/litellm'],
    tried: '1.106.2',
    version: file => [
      ...[join(dirname(file), 'python3'), '-c', 'import importlib.metadata as m; print(m.version("litellm"))'],
    ],
    command: ({ file, folder, port }) => [
      ...[file, '--config', join(folder, 'config.yaml'), '--host', '127.0.0.1', '--port', String(port)],
      ...['--num_workers', '1'],
    ],
    config: ({ upstream }) => ({
      name: 'config.yaml',
      text: `
model_list:
  - model_name: ${MODEL}
    litellm_params: { model: openai/${MODEL}, api_base: '${upstream}/v1', api_key: upstream }
general_settings: { master_key: sk-bench }
litellm_settings: { telemetry: false, num_retries: 0 }
`,
    }),
    env: () => ({ LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' }),
    ready: '/health/liveliness',
    key: async () => 'sk-bench',
    path: CHAT,
    model: MODEL,
    share: 0.05,
  },
  {
    name: 'agentgateway',
    ...none,
    files: ['agentgateway'],
    version: file => [file, '--version'],
    command: ({ file, folder }) => [file, '-f', join(folder, 'config.yaml')],
    config: ({ port, otherPorts: [admin, stats, readiness], upstream }) => ({
      name: 'config.yaml',
      text: `
config:
  workerThreads: 1
  adminAddr: 127.0.0.1:${admin}
  statsAddr: 127.0.0.1:${stats}
  readinessAddr: 127.0.0.1:${readiness}
  logging: { filter: 'false' }
llm:
  port: ${port}
  models:
  - name: ${MODEL}
    provider: openAI
    params: { baseUrl: '${upstream}/v1', model: ${MODEL}, apiKey: upstream }
`,
    }),
    ready: '/v1/models',
    path: CHAT,
    model: MODEL,
    share: 1,
  },
]

/** A peer whose program was found. */
export interface FoundPeer {
  readonly peer: Peer
  readonly file: string
}

export interface Peers {
  readonly found: readonly FoundPeer[]
  readonly missing: readonly Peer[]
}

export const noPeers: Peers = { found: [], missing: [] }

export function findPeers(given: string): Peers {
  const folder = resolve(given)
  if (!existsSync(folder)) throw new Error(`--peers names a folder with programs; ${folder} does not exist.`)
  const fileOf = (peer: Peer): string | undefined => peer.files.map(name => join(folder, name)).find(existsSync)
  return {
    found: peers.flatMap(peer => {
      const file = fileOf(peer)
      return file === undefined ? [] : [{ peer, file }]
    }),
    missing: peers.filter(peer => fileOf(peer) === undefined),
  }
}

export function versionOf({ peer, file }: FoundPeer): string {
  if (peer.version === undefined) return 'unknown'
  try {
    return read(peer.version(file)).split('\n').at(-1)!.trim()
  } catch {
    return 'unknown'
  }
}

/** Python and Node start slowly, especially beside other programs on one core. */
const READY_MS_MAX = 120_000

export async function startPeer({ peer, file }: FoundPeer, { bench, upstream }: Setting): Promise<Subject> {
  const port = freePort()
  const folder = join(bench.folder, `${peer.name}-${port}`)
  mkdirSync(folder)
  const otherPorts = [freePort(), freePort(), freePort()] as const
  const start: PeerStart = { file, folder, port, otherPorts, upstream: `http://127.0.0.1:${upstream.port}` }
  const config = peer.config?.(start)
  if (config !== undefined) writeFileSync(join(folder, config.name), config.text)
  const env = { HOME: folder, ...peer.env?.(start) }
  const child = bench.start({ name: peer.name, core: SUBJECT_CORE, command: peer.command(start), env })
  try {
    await until(() => answers(port, peer.ready), child, READY_MS_MAX)
    const key = (await peer.key?.(start)) ?? 'bench'
    return subjectOf(peer, start, { child, keys: [key], stop: () => bench.stop(child) })
  } catch (fault) {
    await bench.stop(child)
    throw fault
  }
}

interface Running extends Pick<Subject, 'keys' | 'stop'> {
  readonly child: Child
}

function subjectOf(peer: Peer, start: PeerStart, { child, keys, stop }: Running): Subject {
  const { path, model } = peer
  const manner: Manner = { path, model, headers: peer.headers?.(start) ?? {}, isExact: false }
  return { name: peer.name, pid: child.pid, port: start.port, keys, manner, share: peer.share, stop }
}

async function answers(port: number, path: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { keepalive: false })
    await answer.arrayBuffer()
    return answer.status < 500
  } catch {
    return false
  }
}
