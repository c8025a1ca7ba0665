// The error below a field, and what ties a control to it.

interface FieldErrorProps {
  readonly id: string
  readonly text: string | undefined
}

/** What is wrong with a field, or with a group of controls, each of which has `invalidBy` of the same id. */
export const FieldError = ({ id, text }: FieldErrorProps) =>
  text !== undefined && (
    <p id={`${id}-error`} className="break-words text-bad text-xs">
      {text}
    </p>
  )

/** For a control of a group that has a `FieldError`. */
export const invalidBy = (id: string, error: string | undefined) =>
  error === undefined ? {} : ({ 'aria-invalid': true, 'aria-describedby': `${id}-error` } as const)
