// What screen readers say of a text that changes often.

import { useEffect, useRef, useState } from 'react'

const Said = ({ text }: { readonly text: string }) => (
  <span role="status" className="sr-only">
    {text}
  </span>
)

/** Says the text when it has not changed for a second: not at every key. */
export function SaidLater({ text }: { readonly text: string }) {
  const [said, setSaid] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text), 1_000)
    return () => clearTimeout(timer)
  }, [text])
  return <Said text={said} />
}

/** Says what the text is at the beginning, and then every five seconds. */
export function SaidAtTimes({ text }: { readonly text: string }) {
  const [said, setSaid] = useState(text)
  const newest = useRef(text)
  useEffect(() => {
    newest.current = text
  }, [text])
  useEffect(() => {
    const timer = setInterval(() => setSaid(newest.current), 5_000)
    return () => clearInterval(timer)
  }, [])
  return <Said text={said} />
}
