// A table of a few rows that belong to a page: no sorting, no paging, no choice of columns. On a phone each row is two lines.

import { Fragment } from 'react'
import { useIsNarrow } from './narrow.ts'
import type { Column } from './table.tsx'

interface SmallTableProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
  readonly current?: string | undefined
}

export function SmallTable<Row>(props: SmallTableProps<Row>) {
  return useIsNarrow() ? <NarrowRows {...props} /> : <WideRows {...props} />
}

function WideRows<Row>({ label, columns, rows, rowKey, current }: SmallTableProps<Row>) {
  return (
    <table aria-label={label} className="w-full">
      <thead>
        <tr className="h-8 border-line border-b text-left text-muted text-xs">
          {columns.map(({ id, title, align }) => (
            <th
              key={id}
              scope="col"
              className={`pr-4 font-medium whitespace-nowrap ${align === 'right' ? 'text-right' : ''}`}
            >
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(row => {
          const key = rowKey(row)
          return (
            <tr
              key={key}
              aria-current={current === key ? 'true' : undefined}
              className={`h-8 border-line border-b ${current === key ? 'bg-accent-soft' : ''}`}
            >
              {columns.map(({ id, align, cell }) => (
                <td
                  key={id}
                  className={`max-w-72 py-1 pr-4 break-words ${align === 'right' ? 'text-right tabular-nums' : ''}`}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function NarrowRows<Row>({ label, columns, rows, rowKey, current }: SmallTableProps<Row>) {
  const [main, side, notes] = (['main', 'side', 'note'] as const).map(place =>
    columns.filter(column => column.phone === place),
  )
  return (
    <ul aria-label={label} className="border-line border-t">
      {rows.map(row => {
        const key = rowKey(row)
        return (
          <li
            key={key}
            aria-current={current === key ? 'true' : undefined}
            className={`border-line border-b py-2 ${current === key ? 'bg-accent-soft' : ''}`}
          >
            <span className="flex items-baseline justify-between gap-3">
              <span className="min-w-0 flex-1 break-words font-medium">
                {main!.map(column => (
                  <Fragment key={column.id}>{column.cell(row)} </Fragment>
                ))}
              </span>
              <span className="shrink-0 tabular-nums">
                {side!.map(column => (
                  <Fragment key={column.id}>{column.cell(row)}</Fragment>
                ))}
              </span>
            </span>
            <span className="flex flex-wrap gap-x-3 text-muted text-xs">
              {notes!.map(column => (
                <span key={column.id} className="max-w-full break-words">
                  {/* A number needs its name. */}
                  {column.align === 'right' && `${column.title} `}
                  {column.cell(row)}
                </span>
              ))}
            </span>
          </li>
        )
      })}
    </ul>
  )
}
