// The agents that are tried: where npm gets them, and how each is pointed at the gateway and set to work.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Dialect } from '../../../test/dialects/upstreams.ts'

export interface Setting {
  /** Of the gateway, without a path. */
  readonly url: string
  readonly key: string
  /** `<provider>/<model>`. */
  readonly model: string
  readonly prompt: string
  readonly home: string
}

export interface Agent {
  readonly name: string
  readonly package: string
  readonly version: string
  readonly speaks: Dialect
  /** Below node_modules. Platform packages carry the binary, so that no install script must run. */
  readonly program: readonly string[]
  readonly env?: (setting: Setting) => Record<string, string>
  /** Files below its home. */
  readonly files?: (setting: Setting) => Record<string, string>
  readonly args: (setting: Setting) => readonly string[]
}

const platform = `${process.platform}-${process.arch}`

export const agents: readonly Agent[] = [
  {
    name: 'claude-code',
    package: '@anthropic-ai/claude-code',
    version: '2.1.325',
    speaks: 'anthropic-messages',
    program: [`@anthropic-ai/claude-code-${platform}/claude`],
    env: ({ url, key, model }) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    args: ({ prompt }) => ['-p', prompt, '--permission-mode', 'acceptEdits', '--allowedTools', 'Bash,Edit,Read'],
  },
  {
    name: 'codex',
    package: '@openai/codex',
    version: '0.166.0',
    speaks: 'openai-responses',
    program: ['@openai/codex/bin/codex.js'],
    env: ({ key }) => ({ WEIR_KEY: key }),
    files: ({ url, model }) => ({
      '.codex/config.toml': [
        `model = "${model}"`,
        'model_provider = "weir"',
        'check_for_update_on_startup = false',
        '[model_providers.weir]',
        'name = "Weir"',
        `base_url = "${url}/v1"`,
        'env_key = "WEIR_KEY"',
        'wire_api = "responses"',
        '[analytics]',
        'enabled = false',
      ].join('\n'),
    }),
    args: ({ prompt }) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
  },
  {
    name: 'gemini-cli',
    package: '@google/gemini-cli',
    version: '0.61.0',
    speaks: 'gemini',
    program: ['.bin/gemini'],
    env: ({ url, key }) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key }),
    files: () => ({
      '.gemini/settings.json': JSON.stringify({
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        security: { auth: { selectedType: 'gemini-api-key' } },
        telemetry: { enabled: false },
      }),
    }),
    args: ({ prompt, model }) => ['--model', model, '--approval-mode', 'yolo', '--skip-trust', '--prompt', prompt],
  },
  {
    name: 'opencode',
    package: 'opencode-ai',
    version: '1.18.33',
    speaks: 'openai-chat',
    program: [`opencode-${platform}/bin/opencode`],
    env: ({ key }) => ({ WEIR_KEY: key, OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    files: ({ url, model }) => ({
      '.config/opencode/opencode.json': JSON.stringify({
        provider: {
          weir: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Weir',
            options: { baseURL: `${url}/v1`, apiKey: '{env:WEIR_KEY}' },
            models: { [model]: { name: model } },
          },
        },
        autoupdate: false,
        share: 'disabled',
      }),
    }),
    args: ({ prompt, model }) => ['run', '--model', `weir/${model}`, prompt],
  },
]

/** A home that nobody has lived in, with the files that the agent is set up by. */
export function furnish(agent: Agent, setting: Setting): void {
  for (const [path, text] of Object.entries(agent.files?.(setting) ?? {})) {
    mkdirSync(join(setting.home, path, '..'), { recursive: true })
    writeFileSync(join(setting.home, path), text)
  }
}
