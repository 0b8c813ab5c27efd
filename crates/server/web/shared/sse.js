// Reads server-sent events from a streamed response.

const MAX_LINE_CHARS = 16 << 20;

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
        if (data === '[DONE]') return;
        yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
