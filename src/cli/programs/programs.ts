// The programs that `weir connect` knows. The command, the guide pages, the tests and scripts/proof/agents.ts all read
// this table.

import { libraries } from './libraries.ts'
import type { Program } from './program.ts'

/** With one of these variables, Claude Code does not use `ANTHROPIC_BASE_URL`. */
const otherProviders = ['BEDROCK', 'VERTEX', 'FOUNDRY'].map(name => ({
  path: ['env', `CLAUDE_CODE_USE_${name}`],
  effect: 'Claude Code calls that provider and not Weir',
}))

const agents: Readonly<Record<string, Program>> = {
  'claude-code': {
    title: 'Claude Code',
    about: "Anthropic's coding agent for the terminal",
    kind: 'agent',
    speaks: 'anthropic-messages',
    aliases: ['claude'],
    model: 'claude-sonnet-5',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['CLAUDE_CONFIG_DIR', '.claude'],
          names: ['settings.json'],
          format: 'json',
          overriding: otherProviders,
          fields: {
            env: {
              ANTHROPIC_BASE_URL: url,
              ANTHROPIC_AUTH_TOKEN: key,
              ANTHROPIC_MODEL: model,
              ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
              CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
            },
          },
        },
      ],
      start: 'claude',
    }),
    notes: [
      'The variables of `env` can be exported in a shell instead; then they count for that shell only.',
      '`ANTHROPIC_DEFAULT_HAIKU_MODEL` is for small side tasks: a cheaper model is enough for it.',
      '`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC` stops requests to other hosts than the gateway.',
      'Claude Code warns about a model whose name it does not know, and assumes a large context for it.',
      'Claude Code takes a tool call with the id `x_1` for a duplicate of `x` and loses its result. This is an error of ' +
        'the agent.',
    ],
  },
  'codex': {
    title: 'Codex',
    about: "OpenAI's coding agent for the terminal",
    kind: 'agent',
    speaks: 'openai-responses',
    model: 'gpt-5',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['CODEX_HOME', '.codex'],
          names: ['config.toml'],
          format: 'toml',
          overriding: [
            {
              path: ['profile'],
              effect: 'older versions of Codex take the model and the provider of that profile, newer ones refuse it',
            },
          ],
          fields: {
            model,
            model_provider: 'weir',
            model_providers: {
              weir: { name: 'Weir', base_url: `${url}/v1`, env_key: 'WEIR_KEY', wire_api: 'responses' },
            },
          },
        },
        { folder: ['CODEX_HOME', '.codex'], names: ['.env'], format: 'env', fields: { WEIR_KEY: key } },
      ],
      start: 'codex',
    }),
    notes: [
      'Outside of a git repository, `codex exec` needs `--skip-git-repo-check`.',
      'With `supports_websockets = true` under `[model_providers.weir]`, Codex uses a [WebSocket](websocket.md#codex).',
      'The tools of MCP servers also reach models that do not speak Responses, under [names with the ' +
        'server](../how-it-works/dialects.md#details), such as `mcp__docs__search`.',
      'Codex offers a web search with every call. If the model has no price for searches, a translated call goes without ' +
        'it and `X-Weir-Loss` lists `web_search`. If the provider speaks Responses itself, Weir refuses such a call ' +
        'with `service_unpriced`: add the price, or set `web_search = "disabled"` in `config.toml`.',
    ],
  },
  'gemini-cli': {
    title: 'Gemini CLI',
    about: "Google's coding agent for the terminal",
    kind: 'agent',
    speaks: 'gemini',
    aliases: ['gemini'],
    model: 'gemini-3-pro-preview',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['GEMINI_CLI_HOME', ''],
          names: ['.gemini/settings.json'],
          format: 'json',
          fields: { security: { auth: { selectedType: 'gemini-api-key' } }, model: { name: model } },
        },
        {
          folder: ['GEMINI_CLI_HOME', ''],
          names: ['.gemini/.env'],
          format: 'env',
          fields: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key },
        },
      ],
      start: 'gemini',
    }),
    notes: [
      '`selectedType` must be set in `settings.json`. Without it, Gemini CLI ends with `Invalid auth method selected.`, ' +
        'even if the variables are set.',
      'Gemini CLI reads `.env` only in folders that you have trusted. With `--prompt`, use `--skip-trust` or set ' +
        '`GEMINI_CLI_TRUST_WORKSPACE=true`. A `.env` file in the project comes before the one in `.gemini`.',
      'Gemini CLI does not send signed reasoning back. Weir stores it with the tool call that follows it, and adds it ' +
        'when that call comes back.',
    ],
  },
  'opencode': {
    title: 'opencode',
    about: 'a coding agent for the terminal',
    kind: 'agent',
    speaks: 'openai-chat',
    model: 'gpt-5',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['XDG_CONFIG_HOME', '.config'],
          names: ['opencode/opencode.json', 'opencode/opencode.jsonc'],
          format: 'json',
          fields: {
            model: `weir/${model}`,
            provider: {
              weir: {
                npm: '@ai-sdk/openai-compatible',
                name: 'Weir',
                options: { baseURL: `${url}/v1` },
                models: { [model]: { name: model } },
              },
            },
          },
        },
        {
          folder: ['XDG_DATA_HOME', '.local/share'],
          names: ['opencode/auth.json'],
          format: 'json',
          fields: { weir: { type: 'api', key } },
        },
      ],
      start: 'opencode',
    }),
    notes: ['Each model that you want to choose in opencode needs a line in `models`.'],
  },
  'cline': {
    title: 'Cline',
    about: 'a coding agent for VS Code and the terminal',
    kind: 'agent',
    speaks: 'openai-chat',
    model: 'gpt-5',
    setUp: ({ url, key, model }) => ({
      commands: [`cline auth --provider openai --apikey ${key} --modelid ${model} --baseurl ${url}/v1`],
      steps: [
        'In VS Code, open the settings of Cline (the gear).',
        'API Provider: OpenAI Compatible',
        `Base URL: ${url}/v1`,
        `API Key: ${key}`,
        `Model ID: ${model}`,
      ],
      start: 'cline',
    }),
    notes: ['Cline keeps the key itself: the terminal program in a file of its own, VS Code in its secret storage.'],
  },
  'aider': {
    title: 'aider',
    about: 'pair programming in the terminal, with git',
    kind: 'agent',
    speaks: 'openai-chat',
    model: 'gpt-5',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['', ''],
          names: ['.aider.conf.yml'],
          format: 'yaml',
          fields: { 'model': `openai/${model}`, 'openai-api-base': `${url}/v1`, 'openai-api-key': key },
        },
      ],
      start: 'aider',
    }),
    notes: [
      'The prefix `openai/` tells aider to speak Chat; the rest is the name of the model at Weir.',
      'aider warns about a model that it does not know. `--no-show-model-warnings` turns that off.',
      'aider has no tools: it reads its changes out of the text of the answer.',
    ],
  },
}

const editors: Readonly<Record<string, Program>> = {
  continue: {
    title: 'Continue',
    about: 'an assistant for VS Code, JetBrains and the terminal',
    kind: 'editor',
    speaks: 'openai-chat',
    model: 'gpt-5',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['CONTINUE_GLOBAL_DIR', '.continue'],
          names: ['config.yaml'],
          format: 'yaml',
          fieldsOfNewFile: { name: 'Local Config', version: '1.0.0', schema: 'v1' },
          hides: {
            name: 'config.json',
            remedy:
              'Move your settings to config.yaml first (https://docs.continue.dev/reference/yaml-migration), or add the ' +
              'model to config.json by hand.',
          },
          fields: {
            models: [
              {
                name: 'Weir',
                provider: 'openai',
                model,
                apiBase: `${url}/v1`,
                // Not a template of JavaScript: Continue replaces it.
                apiKey: '${{ secrets.WEIR_KEY }}',
              },
            ],
          },
        },
        { folder: ['CONTINUE_GLOBAL_DIR', '.continue'], names: ['.env'], format: 'env', fields: { WEIR_KEY: key } },
      ],
      start: 'cn',
    }),
    notes: [
      'The editors and the terminal program `cn` read the same files.',
      'If there is a `config.yaml`, Continue does not read `config.json`. So `--write` creates no `config.yaml` beside it.',
    ],
  },
  cursor: {
    title: 'Cursor',
    about: 'an editor with an agent',
    kind: 'editor',
    speaks: 'openai-chat',
    model: 'team-coder',
    setUp: ({ url, key, model }, namesModel = false) => ({
      steps: [
        // It would replace a model name that exists.
        ...(namesModel
          ? []
          : [`Give a model this name, on the machine of the gateway: weir routes set ${model} openai/gpt-5`]),
        'Open Cursor Settings, Models, API Keys.',
        `OpenAI API Key: ${key}`,
        `Override OpenAI Base URL: ${url}/v1`,
        `Add a custom model: ${model}`,
        'Choose this model in the chat.',
      ],
    }),
    notes: [
      "Requests come from Cursor's servers, not from your machine. So the gateway needs a public address with TLS: " +
        '`http://127.0.0.1:8080` does not work. Cursor sees your Weir key; give it a budget.',
      'The override counts for all OpenAI models of Cursor. Turn it off to use its built-in models again.',
      'Cursor chooses the format of its agent by the name of the model: with `claude` in the name it sends parts of ' +
        'Messages, and with names such as `gpt-5` a Responses body, both to `/chat/completions`, where Weir refuses ' +
        'them with 400. So give the model a [name of your own](model-names.md) without these words, such as `team-coder`.',
    ],
  },
  zed: {
    title: 'Zed',
    about: 'an editor with an agent',
    kind: 'editor',
    speaks: 'openai-chat',
    model: 'gpt-5',
    setUp: ({ url, key, model }) => ({
      files: [
        {
          folder: ['XDG_CONFIG_HOME', '.config'],
          names: ['zed/settings.json'],
          format: 'json',
          fields: {
            language_models: {
              openai_compatible: {
                weir: {
                  api_url: `${url}/v1`,
                  available_models: [{ name: model, display_name: `${model} (Weir)`, max_tokens: 200_000 }],
                },
              },
            },
            agent: { default_model: { provider: 'weir', model } },
          },
        },
      ],
      variables: { WEIR_API_KEY: key },
      start: 'zed .',
    }),
    notes: [
      'Zed wants no keys in `settings.json`: export the variable in the shell that starts Zed, or enter the key in the ' +
        'settings of the agent, where Zed keeps it in the keychain.',
      '`max_tokens` is the context of the model in tokens: correct it for yours.',
    ],
  },
}

export const programs: Readonly<Record<string, Program>> = { ...agents, ...editors, ...libraries }
