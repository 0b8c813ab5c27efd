// Server-sent events out of a response that is read as it comes.

/** The longest line that is waited for. A server that sends more without an end is not ours. */
const LONGEST = 16 << 20;

/**
 * The JSON of every event. Ends at `[DONE]`; throws when the stream ends before that.
 *
 * @param {Response} response
 * @returns {AsyncGenerator<any, void>}
 */
export async function* events(response) {
  if (!response.body) throw new TypeError('the answer has no body');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new TypeError('the answer broke off');
      rest += value;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST) throw new TypeError('the answer has a line without an end');
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
