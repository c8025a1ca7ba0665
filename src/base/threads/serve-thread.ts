// The thread's side of a Thread: answers its requests. A sync handler is answered before the next message is read, so
// such requests are carried out in their order.
//
// An error that a handler throws rejects its request, and the thread continues. An error outside of a handler, also in
// `build`, ends the thread.

/** The methods of a thread: their inputs and outputs, by name. A method has at most one input. */
export type ThreadMethods<Methods> = { readonly [Name in keyof Methods]: (input: never) => unknown }

export type ThreadMethodName<Methods> = keyof Methods & string

export type ThreadHandlers<Methods extends ThreadMethods<Methods>> = {
  readonly [Name in keyof Methods]: (
    input: Parameters<Methods[Name]>[0],
  ) => ReturnType<Methods[Name]> | Promise<ReturnType<Methods[Name]>>
}

/** The set-up data is the first message to each thread. */
export type ToThread =
  | { readonly setup: unknown }
  | { readonly id: number; readonly name: string; readonly input: unknown }

export type FromThread =
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly fault: string }
  | { readonly event: unknown }

declare const self: Worker

type Handler = (input: unknown) => unknown

/**
 * Serves the requests of a thread. `build` gets the set-up data. `transferOf` names the buffers of an output that are
 * transferred instead of copied.
 */
export function serveThread<Methods extends ThreadMethods<Methods>, Setup = undefined>(
  build: (setup: Setup) => ThreadHandlers<Methods>,
  transferOf: (output: ReturnType<Methods[keyof Methods]>) => ArrayBuffer[] = () => [],
): void {
  let handlers: Readonly<Record<string, Handler>>
  self.onmessage = ({ data: message }: MessageEvent<ToThread>) => {
    if ('setup' in message) {
      // Thread has checked the types of set-up data and inputs; the messages have lost them.
      handlers = build(message.setup as Setup) as typeof handlers
      return
    }
    const { id, name, input } = message
    const reply = (output: unknown): void =>
      send({ id, output }, transferOf(output as ReturnType<Methods[keyof Methods]>))
    const fail = (fault: unknown): void => send({ id, fault: errorText(fault) })
    try {
      const output = handlers[name]!(input)
      if (output instanceof Promise) output.then(reply).catch(fail)
      else reply(output)
    } catch (fault) {
      fail(fault)
    }
  }
}

/** Sends a message that answers no request. */
export const sendEvent = (event: unknown): void => send({ event })

export const errorText = (fault: unknown): string => (fault instanceof Error ? fault.message : 'unknown error')

const send = (message: FromThread, transfer: ArrayBuffer[] = []): void => postMessage(message, transfer)
