// The second factor of the viewer: setting it up with a QR code, recovery codes, turning it off.

import { useEffect, useState } from 'react'
import { useWrite } from '../api/reads.ts'
import { boot, useMe } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Section } from '../parts/page.tsx'
import { SecretOnce } from '../parts/secret-once.tsx'
import { Id, State } from '../parts/values.tsx'
import { meWords } from '../words/en/me.ts'
import { useWords } from '../words/words.ts'
import { qrPath } from './qr-path.ts'

type Step = 'begin' | 'codes' | 'remove'

export function SecondFactor() {
  const t = useWords(meWords)
  const { secondFactor } = useMe()
  const [step, setStep] = useState<Step>()
  const [codes, setCodes] = useState<readonly string[]>()
  const close = (): void => setStep(undefined)
  const show = (made: readonly string[]): void => {
    setCodes(made)
    close()
  }
  return (
    <Section title={t('factorTitle')} note={secondFactor ? t('factorOnNote') : t('factorOffNote')}>
      <p className="mb-3">
        {secondFactor ? <State tone="ok">{t('factorOn')}</State> : <State tone="warn">{t('factorOff')}</State>}
      </p>
      <div className="flex flex-wrap gap-2">
        {secondFactor ? (
          <>
            <button type="button" className="button" onClick={() => setStep('codes')}>
              {t('newCodes')}
            </button>
            <button type="button" className="button button-bad" onClick={() => setStep('remove')}>
              {t('removeFactor')}
            </button>
          </>
        ) : (
          <button type="button" className="button button-main" onClick={() => setStep('begin')}>
            {t('begin')}
          </button>
        )}
      </div>
      {step === 'begin' && <BeginDialog onClose={close} onCodes={show} />}
      {step === 'codes' && <NewCodesDialog onClose={close} onCodes={show} />}
      {step === 'remove' && <RemoveDialog onClose={close} />}
      {codes !== undefined && (
        <SecretOnce
          title={t('codesTitle')}
          text={t('codesText')}
          secret={codes.join('\n')}
          copyLabel={t('copyCodes')}
          fileName="weir-recovery-codes.txt"
          onClose={() => setCodes(undefined)}
        />
      )}
    </Section>
  )
}

interface StepProps {
  readonly onClose: () => void
}

interface CodesProps extends StepProps {
  readonly onCodes: (codes: readonly string[]) => void
}

interface PasswordDialogProps extends StepProps {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly isBad?: boolean
  run(currentPassword: string): Promise<void>
}

/** What changes the second factor needs the password again. */
function PasswordDialog({ title, text, action, isBad = false, run, onClose }: PasswordDialogProps) {
  const t = useWords(meWords)
  const me = useMe()
  const form = useForm({
    initial: { currentPassword: '' },
    save: ({ values }) => run(values.currentPassword),
  })
  return (
    <Dialog title={title} onClose={onClose}>
      <Form of={form} action={action} isBad={isBad} onCancel={onClose}>
        <p className="text-muted">{text}</p>
        <input type="text" autoComplete="username" value={me.email ?? ''} readOnly hidden />
        <TextField
          form={form}
          name="currentPassword"
          label={t('password')}
          type="password"
          autoComplete="current-password"
          autoFocus
        />
      </Form>
    </Dialog>
  )
}

function BeginDialog({ onClose, onCodes }: CodesProps) {
  const t = useWords(meWords)
  const begin = useWrite('POST /api/web/me/second-factor')
  const [made, setMade] = useState<{ readonly secret: string; readonly url: string }>()
  if (made !== undefined) return <ScanDialog {...made} onClose={onClose} onCodes={onCodes} />
  return (
    <PasswordDialog
      title={t('beginTitle')}
      text={t('beginText')}
      action={t('continue')}
      onClose={onClose}
      run={async currentPassword => setMade(await begin.mutateAsync({ body: { currentPassword } }))}
    />
  )
}

function ScanDialog({ secret, url, onClose, onCodes }: CodesProps & { readonly secret: string; readonly url: string }) {
  const t = useWords(meWords)
  const confirm = useWrite('POST /api/web/me/second-factor/confirm', 'me')
  const form = useForm({
    initial: { code: '' },
    async save({ values }) {
      const { recoveryCodes } = await confirm.mutateAsync({ body: { code: values.code.replaceAll(' ', '') } })
      await boot()
      say(t('factorDone'))
      onCodes(recoveryCodes)
    },
  })
  return (
    <Dialog title={t('beginTitle')} onClose={onClose}>
      <Form of={form} action={t('confirm')} onCancel={onClose}>
        <p className="text-muted">{t('scanText')}</p>
        <Qr text={url} label={t('qr')} />
        <div>
          <p className="mb-1 text-muted text-xs">{t('secret')}</p>
          <Id id={secret} />
        </div>
        <TextField form={form} name="code" label={t('code')} autoComplete="one-time-code" mono />
      </Form>
    </Dialog>
  )
}

/** Dark on white in both themes: cameras do not read it otherwise. */
function Qr({ text, label }: { readonly text: string; readonly label: string }) {
  const [drawn, setDrawn] = useState<{ readonly size: number; readonly path: string }>()
  useEffect(() => {
    let isGone = false
    void import('uqr').then(({ encode }) => {
      const { data, size } = encode(text, { ecc: 'M', border: 2 })
      if (!isGone) setDrawn({ size, path: qrPath(data) })
    })
    return () => {
      isGone = true
    }
  }, [text])
  const size = drawn?.size ?? 1
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-52 self-center rounded border border-line"
      style={{ background: '#ffffff' }}
    >
      {drawn !== undefined && <path d={drawn.path} fill="#000000" />}
    </svg>
  )
}

function NewCodesDialog({ onClose, onCodes }: CodesProps) {
  const t = useWords(meWords)
  const renew = useWrite('POST /api/web/me/recovery-codes')
  return (
    <PasswordDialog
      title={t('newCodesTitle')}
      text={t('newCodesText')}
      action={t('newCodes')}
      onClose={onClose}
      run={async currentPassword => onCodes((await renew.mutateAsync({ body: { currentPassword } })).recoveryCodes)}
    />
  )
}

function RemoveDialog({ onClose }: StepProps) {
  const t = useWords(meWords)
  const remove = useWrite('POST /api/web/me/second-factor/remove', 'me')
  return (
    <PasswordDialog
      title={t('removeTitle')}
      text={t('removeText')}
      action={t('removeFactor')}
      isBad
      onClose={onClose}
      run={async currentPassword => {
        await remove.mutateAsync({ body: { currentPassword } })
        await boot()
        say(t('removed'))
        onClose()
      }}
    />
  )
}
