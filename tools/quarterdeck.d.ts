// What a JavaScript handler may import and receives, for editors. Refer to it with
//   /// <reference path="../quarterdeck.d.ts" />

declare module 'quarterdeck' {
  /** What `execute` is called with. */
  export interface Call<Args = Record<string, unknown>> {
    /** The arguments: checked against the schema, defaults filled in. */
    args: Args;
    context: Context;
  }

  /** What `execute` returns. `data` may be left out when there is nothing to say. */
  export type Answer<Data = unknown> =
    | { ok: true; data?: Data | null; intents?: Intent[] }
    | { ok: false; error: AnswerError; intents?: Intent[] };

  export interface AnswerError {
    type: ErrorTypeName;
    /** One sentence that the model can act on. */
    message: string;
    retryable?: boolean;
    details?: unknown;
    suggestion?: string;
    partialSideEffects?: boolean;
    idempotencyRequired?: boolean;
    retryAfterMs?: number;
    maxRetries?: number;
  }

  export type Mode = 'text' | 'voice';

  export interface Context {
    readonly clientId: string;
    readonly mode: Mode;
    readonly callId: string;
    readonly tool: { readonly id: string; readonly version: string; readonly idempotent: boolean };
    readonly call: {
      readonly id: string;
      /** What a gate changed before the call: `{ top_k: { asked: 10, given: 3 } }`. */
      readonly clamped: Readonly<Record<string, { asked: unknown; given: unknown }>>;
    };
    readonly session: {
      readonly id: string;
      readonly isActive: boolean;
      readonly turn: number;
      readonly toolsVersion: string;
      /** A copy; changing it changes nothing. Return an intent instead. */
      readonly state: Readonly<Record<string, unknown>>;
    };
    /** What this handler may use. */
    readonly capabilities: Readonly<Record<string, boolean>>;

    readonly messaging: {
      /** Sends a message to this client's open connection; fails with TRANSIENT when it is gone. */
      send(message: { type: string; [field: string]: unknown }): Promise<void>;
    };
    readonly voice: { isActive(): boolean };
    readonly audit: { log(event: string, data?: unknown): void };
    /** A note to the client while a slow tool runs. */
    progress(text: string): void;
    /**
     * A partial result, shown in place of the one before it until the answer is there. False when it was dropped: it
     * has more than 64 KiB, or there were too many, or more than 20 in a second.
     */
    emit(chunk: unknown): boolean;
    /** Aborts when the user stops the call, the session ends, or the deadline is near. Pass it to `fetch`. */
    readonly signal: AbortSignal;

    /** With the capability `kb`. */
    readonly kb: {
      search(query: KbQuery): Promise<Evidence[]>;
      query(query: KbQuery): Promise<{ results: Evidence[]; empty?: 'none' | 'filtered'; degraded?: boolean; tookMs: number }>;
      get(ids: string | string[], options?: { returnFields?: string[] }): Promise<unknown>;
    };
    /** With the capability `calendar`. */
    readonly calendar: {
      getFreeBusy(range: { timeMin: string; timeMax: string; items: { id: string }[] }): Promise<{
        calendars: Record<string, { busy: { start: string; end: string }[] }>;
      }>;
      /** What takes up time, recurring events expanded; no calendars named means all of them. */
      getEvents(range: { timeMin: string; timeMax: string; calendars?: string[] }): Promise<CalendarEvent[]>;
      /** The configured calendars, and what each can do. */
      getCalendars(options?: Record<string, never>): Promise<CalendarInfo[]>;
      /** One event by its id; NOT_FOUND for one that this client may not see. */
      getEvent(event: { id: string; calendar?: string }): Promise<CalendarEvent>;
      createEvent(event: {
        summary: string;
        start: string;
        end: string;
        attendees?: string[];
        description?: string;
        /** Whether to add a link to a video call, where one is configured. */
        conference?: boolean;
        calendar?: string;
        /** Whether time that is taken in this calendar is a CONFLICT, judged at the last moment. */
        onlyIfFree?: boolean;
      }): Promise<ChangedCalendarEvent>;
      /** Moves an event that this client may change; CONFLICT if it is not the `version` that is named. */
      moveEvent(change: {
        id: string;
        calendar?: string;
        version?: string;
        start: string;
        end: string;
        onlyIfFree?: boolean;
      }): Promise<ChangedCalendarEvent>;
      /** Cancels an event that this client may change; of a series, the one occurrence. */
      cancelEvent(event: {
        id: string;
        calendar?: string;
        version?: string;
        notify?: boolean;
      }): Promise<ChangedCalendarEvent>;
    };
    /** With the capability `images`. */
    readonly images: {
      /**
       * Generates one image, which becomes a file of the session when the call succeeds. It is asked for once. Of its errors
       * only `OUTCOME_UNKNOWN` means that an image may have been made and charged; `REFUSED` is the provider's content policy.
       */
      generate(request: { prompt: string; aspect?: Aspect }): Promise<{
        file: { id: string; mediaType: string; bytes: number; width: number; height: number };
        /** As provider/model. */
        provider: string;
      }>;
    };
    /** With the capability `store`: small durable values of this tool for this client. */
    readonly store: {
      get(key: string): Promise<unknown>;
      put(key: string, value: unknown): Promise<void>;
      delete(key: string): Promise<void>;
    };
    /** With the capability `moderation`. */
    readonly client: { block(seconds: number, message?: string): Promise<{ seconds: number; until: number }> };
    /** With the capability `tools`: another tool, through the same gates. */
    callTool(toolId: string, args: Record<string, unknown>): Promise<Answer>;
  }

  export type Aspect = 'square' | 'landscape' | 'portrait';

  export interface CalendarEvent {
    id: string;
    /** RFC 3339, UTC. */
    start: string;
    end: string;
    summary: string;
    /** E-mail addresses. */
    attendees: string[];
    calendar: string;
    description?: string;
    /** Where its video call is, if it has one. */
    conference?: string;
    /** Changes whenever the event does. */
    version?: string;
    /** How often it has been changed. */
    sequence?: number;
    /** Whether this client may move or cancel it. */
    changeable?: true;
    /**
     * Not a booking of this client: the time is taken, and nothing else may be known. `id` and `summary` are then empty,
     * and so is `attendees`.
     */
    private?: true;
  }

  /** An event after a change, and who was told of it. */
  export interface ChangedCalendarEvent extends CalendarEvent {
    invitations: {
      notified: { address: string; how: string; status: 'sent' | 'queued' | 'failed' }[];
      /** The event as a file to pass on, where no invitation was sent. */
      ics?: string;
    };
  }

  export interface CalendarInfo {
    name: string;
    /** What keeps it: `local`, `caldav`. */
    backend: string;
    /** Whether a booking can get a link to a video call. */
    hasConferences: boolean;
    /** How attendees are told of changes, if they are. */
    notifiesBy: string | null;
  }

  export interface KbQuery {
    query: string;
    namespace?: string;
    filters?: Record<string, unknown>;
    topK?: number;
    returnFields?: string[];
    includeSnippets?: boolean;
  }

  export interface Evidence {
    id: string;
    type: string;
    title: string;
    snippet: string | null;
    score: number;
    sourceType: string;
    lastUpdated: string | null;
    url: string | null;
    metadata: Record<string, unknown>;
  }

  /** A change of session state that the tool asks for. */
  export type Intent =
    | { type: 'END_VOICE_SESSION'; after?: 'current_turn' | 'farewell_spoken' }
    | { type: 'SUPPRESS_AUDIO'; value: boolean }
    | { type: 'SUPPRESS_TRANSCRIPT'; value: boolean }
    | { type: 'SET_PENDING_MESSAGE'; message: string | null };

  export type ErrorTypeName =
    | 'VALIDATION' | 'NOT_FOUND' | 'MODE_RESTRICTED' | 'BUDGET_EXCEEDED' | 'LOOP_DETECTED' | 'UNAVAILABLE'
    | 'CONFIRMATION_REQUIRED' | 'CONFIRMATION_EXPIRED' | 'CONFIRMATION_DENIED' | 'CONFIRMATION_INVALID'
    | 'SESSION_INACTIVE' | 'SESSION_ACTIVE' | 'BLOCKED' | 'TRANSIENT' | 'RATE_LIMIT' | 'AUTH' | 'CONFLICT'
    | 'PERMANENT' | 'CANCELLED' | 'INTERNAL';

  export const ErrorType: { readonly [Name in ErrorTypeName]: Name };
  export const IntentType: { readonly [Name in Intent['type']]: Name };

  export interface ToolErrorOptions {
    /** Whether the same call may succeed later. */
    retryable?: boolean;
    /** Set it once anything has been changed. */
    partialSideEffects?: boolean;
    idempotencyRequired?: boolean;
    details?: unknown;
    /** What to do instead. */
    suggestion?: string;
    retryAfterMs?: number;
    /** Seconds. */
    retryAfter?: number;
    maxRetries?: number;
  }

  /** Throw it to fail a call in a way that the model understands. */
  export class ToolError extends Error {
    constructor(type: ErrorTypeName, message: string, options?: ToolErrorOptions);
    readonly type: ErrorTypeName;
    readonly retryable: boolean;
    readonly partialSideEffects: boolean;
    readonly idempotencyRequired: boolean;
  }

  /** Returns the answer as it is, or throws an error that says everything that is wrong with it. */
  export function validateToolResponse<T>(response: T): T;
}
