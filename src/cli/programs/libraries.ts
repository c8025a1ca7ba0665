// Libraries that call models from the user's own code. Each example asks a question whose answer needs a tool, and prints
// the answer; scripts/proof/agents.ts runs these texts.

import type { GatewayAccess, Program, SetUp } from './program.ts'

const QUESTION = 'How is the weather in Oslo?'

/** A text in the code of Python or JavaScript. */
const quoted = (text: string): string => JSON.stringify(text)

const variables = ({ key }: GatewayAccess): Pick<SetUp, 'variables'> => ({ variables: { WEIR_KEY: key } })

const langchainPython = ({ url, model }: GatewayAccess): string => `import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI


def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It rains in {city}."


model = ChatOpenAI(model=${quoted(model)}, base_url="${url}/v1", api_key=os.environ["WEIR_KEY"])
agent = create_agent(model, tools=[weather])
result = agent.invoke({"messages": [{"role": "user", "content": "${QUESTION}"}]})
print(result["messages"][-1].text)
`

const langchainJavascript = ({ url, model }: GatewayAccess): string => `import { ChatOpenAI } from '@langchain/openai'
import { createAgent, tool } from 'langchain'
import { z } from 'zod'

const weather = tool(({ city }) => \`It rains in \${city}.\`, {
  name: 'weather',
  description: 'Get the weather of a city.',
  schema: z.object({ city: z.string() }),
})
const configuration = { baseURL: '${url}/v1' }
const model = new ChatOpenAI({ model: ${quoted(model)}, apiKey: process.env.WEIR_KEY, configuration })
const agent = createAgent({ model, tools: [weather] })
const { messages } = await agent.invoke({ messages: [{ role: 'user', content: '${QUESTION}' }] })
console.log(messages.at(-1).text)
`

const llamaIndexPython = ({ url, model }: GatewayAccess): string => `import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike


def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It rains in {city}."


llm = OpenAILike(
    model=${quoted(model)},
    api_base="${url}/v1",
    api_key=os.environ["WEIR_KEY"],
    is_chat_model=True,
    is_function_calling_model=True,
    context_window=200_000,
)


async def main():
    print(await FunctionAgent(llm=llm, tools=[weather]).run("${QUESTION}"))


asyncio.run(main())
`

const llamaIndexJavascript = ({ url, model }: GatewayAccess): string => `import { OpenAI } from '@llamaindex/openai'
import { agent } from '@llamaindex/workflow'
import { tool } from 'llamaindex'
import { z } from 'zod'

const weather = tool({
  name: 'weather',
  description: 'Get the weather of a city.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => \`It rains in \${city}.\`,
})
const llm = new OpenAI({ model: ${quoted(model)}, apiKey: process.env.WEIR_KEY, baseURL: '${url}/v1' })
const { data } = await agent({ llm, tools: [weather] }).run('${QUESTION}')
console.log(data.result)
`

const vercel = ({
  url,
  model,
}: GatewayAccess): string => `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, tool } from 'ai'
import { z } from 'zod'

const weir = createOpenAICompatible({ name: 'weir', baseURL: '${url}/v1', apiKey: process.env.WEIR_KEY })
const weather = tool({
  description: 'Get the weather of a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => \`It rains in \${city}.\`,
})
const { text } = await generateText({
  model: weir(${quoted(model)}),
  tools: { weather },
  stopWhen: isStepCount(5),
  prompt: '${QUESTION}',
})
console.log(text)
`

const litellm = ({ url, model }: GatewayAccess): string => `import json
import os

from litellm import completion

weather = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Get the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
messages = [{"role": "user", "content": "${QUESTION}"}]


def ask():
    return completion(
        model="openai/${model}",
        api_base="${url}/v1",
        api_key=os.environ["WEIR_KEY"],
        messages=messages,
        tools=[weather],
    ).choices[0].message


answer = ask()
while answer.tool_calls:
    messages.append(answer)
    for call in answer.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"It rains in {city}."})
    answer = ask()
print(answer.content)
`

const library = { kind: 'library', speaks: 'openai-chat', model: 'gpt-5' } as const

export const libraries: Readonly<Record<string, Program>> = {
  'langchain': {
    title: 'LangChain',
    about: 'a library for agents, in Python and JavaScript',
    ...library,
    setUp: connection => ({
      ...variables(connection),
      code: [
        { language: 'python', install: 'pip install langchain langchain-openai', text: langchainPython(connection) },
        {
          language: 'javascript',
          install: 'npm install langchain @langchain/openai zod',
          text: langchainJavascript(connection),
        },
      ],
    }),
    notes: ['`ChatAnthropic` and `ChatGoogleGenerativeAI` work, too, with the address of the gateway without `/v1`.'],
  },
  'llamaindex': {
    title: 'LlamaIndex',
    about: 'a library for agents and search, in Python and JavaScript',
    ...library,
    setUp: connection => ({
      ...variables(connection),
      code: [
        {
          language: 'python',
          install: 'pip install llama-index-core llama-index-llms-openai-like',
          text: llamaIndexPython(connection),
        },
        {
          language: 'javascript',
          install: 'npm install llamaindex @llamaindex/openai @llamaindex/workflow zod',
          text: llamaIndexJavascript(connection),
        },
      ],
    }),
    notes: ['In Python, the class `OpenAI` refuses names of models that it does not know: use `OpenAILike`.'],
  },
  'ai-sdk': {
    title: 'Vercel AI SDK',
    about: 'a library for JavaScript and TypeScript',
    ...library,
    aliases: ['vercel'],
    setUp: connection => ({
      ...variables(connection),
      code: [
        { language: 'javascript', install: 'npm install ai @ai-sdk/openai-compatible zod', text: vercel(connection) },
      ],
    }),
    notes: [
      '`@ai-sdk/openai` (Responses) and `@ai-sdk/anthropic` take the address with `/v1`, `@ai-sdk/google` with `/v1beta`, ' +
        'as `baseURL`.',
    ],
  },
  'litellm': {
    title: 'LiteLLM',
    about: 'a library for Python; here as a client of Weir',
    ...library,
    setUp: connection => ({
      ...variables(connection),
      code: [{ language: 'python', install: 'pip install litellm mcp', text: litellm(connection) }],
    }),
    notes: [
      'The prefix `openai/` tells LiteLLM to speak Chat; the rest is the name of the model at Weir.',
      'LiteLLM 1.106.2 ends with an error if the package `mcp` is missing.',
    ],
  },
}
