import type { MoneyText } from '../ledger/money-text.ts'

// What can be written about people: who they are, what they may, how they sign in.
export type SiteRoleName = 'owner' | 'admin' | 'support' | 'member'

/** Whoever asks for it, as they are when it is done; 0: the operator, who may do everything. */
export interface Asked {
  readonly actorId: number
}

export interface PersonInsert {
  readonly id: number
  readonly email: string
  readonly name: string
  /** Its hash. */
  readonly password: string
}

/** An account of their own. */
export interface AccountInsert {
  readonly id: number
  /** Of its keys; whatever is usual where there is none of this name. */
  readonly tier: string
  readonly credit: MoneyText
  /** Of the credit's transfer. */
  readonly creditRef: number
}

export interface SessionInsert {
  readonly id: number
  /** Of the token that renews it, in hex. */
  readonly refresh: string
  readonly address: string
  readonly place: string
  readonly agent: string
}

export interface InvitationInsert {
  readonly id: number
  /** Hex. */
  readonly digest: string
  readonly email: string
  readonly role: SiteRoleName
  readonly member: { readonly accountId: number; readonly rank: number } | null
  readonly expiresMs: number
}

/** What was shown beside the password. */
export type SecondFactor = { readonly step: number } | { readonly recovery: string }

interface Timed {
  readonly nowMs: number
}

interface PersonOperations {
  /** `token` is the digest of what was shown; null: the operator says so. */
  setUpOwner: {
    input: Timed & {
      readonly token: string | null
      readonly person: PersonInsert
      readonly account: AccountInsert
      readonly session: SessionInsert | null
    }
    result: { done: 'set_up' | 'token_wrong' | 'owner_exists' | 'email_taken' }
  }
  register: {
    input: Timed & {
      readonly person: PersonInsert
      readonly account: AccountInsert
      readonly session: SessionInsert
    }
    result: { done: 'registered' | 'email_taken' }
  }
  /** By another: what they may and whether they may come in. What is not given stays as it is. */
  setPerson: {
    input: Timed &
      Asked & {
        readonly id: number
        readonly name?: string | undefined
        readonly email?: string | undefined
        readonly role?: SiteRoleName | undefined
        readonly disabled?: boolean | undefined
      }
    result: { done: 'set' | 'unknown' | 'forbidden' | 'own' | 'last_owner' | 'email_taken' }
  }
  /** They stay as a row without a name. */
  removePerson: {
    input: Timed & Asked & { readonly id: number }
    result: { done: 'removed' | 'unknown' | 'forbidden' | 'own' | 'last_owner' }
  }
  /** By themselves. */
  setProfile: {
    input: { readonly id: number; readonly name?: string | undefined; readonly email?: string | undefined }
    result: { done: 'set' | 'unknown' | 'email_taken' }
  }
  /** All sessions end, but for the one in which it is done. */
  setPassword: {
    input: Timed & { readonly id: number; readonly password: string; readonly sessionId: number | null }
    result: { done: 'set' | 'unknown' }
  }
}

interface SessionOperations {
  signIn: {
    input: Timed & {
      readonly personId: number
      /** As it was when the password was compared. */
      readonly ver: number
      readonly second: SecondFactor | null
      readonly session: SessionInsert
    }
    result: { done: 'signed_in' | 'changed' | 'code_used' }
  }
  /** A short session of whoever has the command line. */
  signInOperator: {
    input: Timed & { readonly id: number; readonly expiresMs: number }
    result: { done: 'signed_in' }
  }
  /** `sealed` is the next token, in base64, for whoever comes with the same a moment later. */
  renewSession: {
    input: Timed & { readonly digest: string; readonly next: string; readonly sealed: string }
    result:
      | { done: 'renewed'; sessionId: number; personId: number; ver: number }
      /** It was renewed a moment ago. */
      | { done: 'again'; sessionId: number; personId: number; ver: number; sealed: string }
      | { done: 'over' }
      /** It was used long ago: somebody has a copy. The session is over. */
      | { done: 'stolen'; sessionId: number; personId: number }
  }
  /** One of theirs, or all but one, or all. */
  endSessions: {
    input: Timed & {
      readonly personId: number
      readonly only?: number | undefined
      readonly except?: number | undefined
      readonly why: 'signed_out' | 'revoked'
    }
    result: { done: 'ended'; count: number } | { done: 'unknown' }
  }
  /** Those that have been over for long, some at a time; and invitations. */
  forgetSessions: { input: Timed; result: { done: 'forgotten'; count: number } }
}

interface FactorOperations {
  /** In base64. What was begun before and not confirmed is void. */
  beginTotp: {
    input: { readonly personId: number; readonly sealed: string }
    result: { done: 'begun' | 'exists' | 'unknown' }
  }
  /** `codes` are digests in hex. */
  confirmTotp: {
    input: Timed & { readonly personId: number; readonly step: number; readonly codes: readonly string[] }
    result: { done: 'confirmed' | 'unknown' | 'exists' }
  }
  renewRecoveryCodes: {
    input: { readonly personId: number; readonly codes: readonly string[] }
    result: { done: 'renewed' | 'unknown' }
  }
  removeTotp: { input: { readonly personId: number }; result: { done: 'removed' | 'unknown' } }
}

interface InvitationOperations {
  invite: {
    input: Timed & Asked & InvitationInsert
    result: { done: 'invited' | 'forbidden' | 'account_unknown' | 'too_many' }
  }
  /** Of somebody who is there: whoever has the token chooses their password. */
  inviteToReset: {
    input: Timed & Asked & Pick<InvitationInsert, 'id' | 'digest' | 'expiresMs'> & { readonly personId: number }
    result: { done: 'invited' | 'unknown' | 'forbidden' | 'own' | 'too_many' }
  }
  /** `newcomer`: nobody yet; else somebody who is signed in. */
  acceptInvitation: {
    input: Timed & {
      readonly digest: string
      readonly personId: number
      readonly newcomer: {
        readonly name: string
        readonly password: string
        readonly account: AccountInsert
        readonly session: SessionInsert
      } | null
    }
    result: { done: 'accepted' | 'invalid' | 'email_taken' }
  }
  resetPassword: {
    input: Timed & { readonly digest: string; readonly password: string }
    result: { done: 'reset'; personId: number } | { done: 'invalid' }
  }
  /** `personId`: only one that they made; null: whoever's. */
  revokeInvitation: {
    input: Timed & Asked & { readonly id: number }
    result: { done: 'revoked' | 'unknown' }
  }
}

interface MemberOperations {
  setMember: {
    input: Timed &
      Asked & { readonly accountId: number; readonly personId: number; readonly rank: number; readonly isNew: boolean }
    result: { done: 'set' | 'unknown' | 'exists' | 'forbidden' }
  }
  removeMember: {
    input: Asked & { readonly accountId: number; readonly personId: number }
    result: { done: 'removed' | 'unknown' | 'forbidden' }
  }
}

interface SiteOperations {
  /** Values as JSON has them; null: as it is unless told. */
  setSite: { input: { readonly changes: Readonly<Record<string, unknown>> }; result: { done: 'set' } }
}

interface SignInOperations extends SessionOperations, FactorOperations {}

export interface PeopleOperations
  extends PersonOperations,
    SignInOperations,
    InvitationOperations,
    MemberOperations,
    SiteOperations {}
