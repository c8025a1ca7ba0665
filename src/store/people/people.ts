// The types of the operations on people: persons, sessions, second factors, invitations, members and site settings.

import type { MoneyText } from '../ledger/money-text.ts'

export type SiteRoleName = 'owner' | 'admin' | 'support' | 'member'

/**
 * The actor of an operation: a person or a service token. The rights of the actor are read when the operation runs. 0 is
 * the operator, who may do everything.
 */
export interface ActorInput {
  readonly actorId: number
}

export interface PersonInsert {
  readonly id: number
  readonly email: string
  readonly name: string
  /** The hash of the password. */
  readonly password: string
}

/** The personal account of a new person. */
export interface AccountInsert {
  readonly id: number
  /** The tier of its keys; the default tier where this one does not exist. */
  readonly tier: string
  readonly credit: MoneyText
  /** The id of the transfer of the credit. */
  readonly creditRef: number
}

export interface SessionInsert {
  readonly id: number
  /** The digest of the refresh token, in hex. */
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

/** The second factor at a sign-in: the time step of a TOTP code, or the digest of a recovery code. */
export type SecondFactor = { readonly step: number } | { readonly recovery: string }

/** The ids of the playground keys that an operation has revoked, because their actor may no longer create keys. */
export interface RevokedKeys {
  readonly revokedKeys: readonly number[]
}

/** What ended with a role in an account: how many open invitations, and which keys. */
export interface EndedAccess extends RevokedKeys {
  readonly endedInvitations: number
}

interface Timed {
  readonly nowMs: number
}

interface PersonOperations {
  /** `token` is the digest of the set-up token; null: the operator needs none. */
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
    result: { done: 'registered' | 'email_taken' | 'balance_too_high' }
  }
  /** Changes another person. Undefined fields stay as they are. */
  setPerson: {
    input: Timed &
      ActorInput & {
        readonly id: number
        readonly name?: string | undefined
        readonly email?: string | undefined
        readonly role?: SiteRoleName | undefined
        readonly disabled?: boolean | undefined
      }
    result: ({ done: 'set' } & RevokedKeys) | { done: 'unknown' | 'forbidden' | 'own' | 'last_owner' | 'email_taken' }
  }
  /** Removes the personal data of a person. The row stays without a name, and so does the personal account. */
  removePerson: {
    input: Timed & ActorInput & { readonly id: number }
    result: ({ done: 'removed' } & RevokedKeys) | { done: 'unknown' | 'forbidden' | 'own' | 'last_owner' }
  }
  /** Changes the profile of the actor. */
  setProfile: {
    input: {
      readonly id: number
      readonly name?: string | undefined
      readonly email?: string | undefined
      /** Values are JSON values; null removes one. Others stay. */
      readonly preferences?: Readonly<Record<string, unknown>> | undefined
    }
    result: { done: 'set' | 'unknown' | 'email_taken' }
  }
  /** Changes a password and ends all sessions of the person except `sessionId`. `ver`: the new version of its tokens. */
  setPassword: {
    input: Timed & { readonly id: number; readonly password: string; readonly sessionId: number | null }
    result: { done: 'set'; ver: number } | { done: 'unknown' }
  }
}

interface TicketInsert {
  readonly digest: string
  readonly sessionId: number
  readonly request: string
  readonly expiresMs: number
}

interface SessionOperations {
  signIn: {
    input: Timed & {
      readonly personId: number
      /** The token version of the person when the password was compared. */
      readonly ver: number
      readonly second: SecondFactor | null
      readonly session: SessionInsert
    }
    result: { done: 'signed_in' | 'changed' | 'code_used' }
  }
  /** Starts a short session of the operator, for the command line. */
  signInOperator: {
    input: Timed & { readonly id: number; readonly expiresMs: number }
    result: { done: 'signed_in' }
  }
  /**
   * Exchanges a refresh token for the next one. `sealed` is the next token, encrypted and in base64: it is returned
   * again if a second request with the same old token comes a moment later. A request that comes later, while nobody has
   * used the next token, gets a new next token.
   */
  renewSession: {
    input: Timed & { readonly digest: string; readonly next: string; readonly sealed: string }
    result:
      | { done: 'renewed'; sessionId: number; personId: number; ver: number }
      /** The token was exchanged a moment ago. */
      | { done: 'again'; sessionId: number; personId: number; ver: number; sealed: string }
      | { done: 'over' }
      /** The token was used before and its successor, too, so somebody has a copy of it. The session has been ended. */
      | { done: 'stolen'; sessionId: number; personId: number }
  }
  /**
   * Ends one session of a person (`only`), or all sessions except one, or all. `actorId`: somebody else ends them, who
   * must have the right to change the person.
   */
  endSessions: {
    input: Timed & {
      readonly actorId?: number | undefined
      readonly personId: number
      readonly only?: number | undefined
      readonly except?: number | undefined
      readonly why: 'signed_out' | 'revoked'
    }
    result: { done: 'ended'; count: number } | { done: 'unknown' | 'forbidden' }
  }
  /** Stores a ticket for a download by its digest in hex. `request`: what is downloaded, as JSON. */
  addTicket: {
    input: Timed & TicketInsert
    result: { done: 'added' | 'too_many' }
  }
  /** Uses a ticket up. A ticket works once. */
  useTicket: {
    input: Timed & { readonly digest: string }
    result: { done: 'used'; sessionId: number; request: string } | { done: 'unknown' }
  }
  /** Deletes some of the sessions, and all invitations and tickets, that ended long ago. */
  forgetSessions: { input: Timed; result: { done: 'forgotten'; count: number } }
}

interface FactorOperations {
  /** Stores an unconfirmed second factor (encrypted, in base64) and replaces an earlier unconfirmed one. */
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
  /** Replaces the open invitations of the address to the same account, or to the site. */
  invite: {
    input: Timed & ActorInput & InvitationInsert
    result: { done: 'invited'; endedInvitations: number } | { done: 'forbidden' | 'account_unknown' | 'too_many' }
  }
  /** Creates an invitation to set a new password: whoever has its token can choose the password of the person. */
  inviteToReset: {
    input: Timed & ActorInput & Pick<InvitationInsert, 'id' | 'digest' | 'expiresMs'> & { readonly personId: number }
    result: { done: 'invited' | 'unknown' | 'forbidden' | 'own' | 'too_many' }
  }
  /** `newcomer` is set for a new person; null for a person who is signed in. */
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
  /** Revokes an open invitation that the actor has made or may grant. */
  revokeInvitation: {
    input: Timed & ActorInput & { readonly id: number }
    result: { done: 'revoked' | 'unknown' }
  }
}

interface MemberOperations {
  setMember: {
    input: Timed &
      ActorInput & {
        readonly accountId: number
        readonly personId: number
        readonly rank: number
        readonly isNew: boolean
      }
    result: ({ done: 'set' } & EndedAccess) | { done: 'unknown' | 'exists' | 'own' | 'forbidden' }
  }
  removeMember: {
    input: Timed & ActorInput & { readonly accountId: number; readonly personId: number }
    result: ({ done: 'removed' } & EndedAccess) | { done: 'unknown' | 'forbidden' }
  }
}

interface SiteOperations {
  /** Changes site settings. Values are JSON values; null restores the default. */
  setSite: { input: { readonly changes: Readonly<Record<string, unknown>> }; result: { done: 'set' } }
}

interface SignInOperations extends SessionOperations, FactorOperations {}

export interface PeopleOperations
  extends PersonOperations,
    SignInOperations,
    InvitationOperations,
    MemberOperations,
    SiteOperations {}
