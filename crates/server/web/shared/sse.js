// Reads server-sent events from a streamed response.

const MAX_LINE_CHARS = 16 << 20;
/** How long the end of a stream that has said all is waited for. */
const MAX_DRAIN_MS = 10_000;

/**
 * The JSON of every event. Ends at `[DONE]`; throws when the stream ends before that.
 *
 * @param {Response} response
 * @returns {AsyncGenerator<any, void>}
 */
export async function* events(response) {
  if (!response.body) throw new TypeError('the response has no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new TypeError('the stream broke off');
      rest += value;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE_CHARS) throw new TypeError('a line of the stream is too long');
      for (const line of lines) {
        if (!line.startsWith('data:')) continue;
        const data = line.slice(5).trim();
        isDone = data === '[DONE]';
        if (isDone) return;
        yield JSON.parse(data);
      }
    }
  } finally {
    // A stream that has said all is read to its end: cancelling it would show as a failed request.
    if (isDone) void drain(reader);
    else reader.cancel().catch(() => {});
  }
}

/** @param {ReadableStreamDefaultReader<string>} reader */
async function drain(reader) {
  const timer = setTimeout(() => reader.cancel().catch(() => {}), MAX_DRAIN_MS);
  try {
    while (!(await reader.read()).done);
  } catch {
    // The connection was lost after everything had come.
  } finally {
    clearTimeout(timer);
  }
}
