// What servers of OpenAI's protocol refuse, some of them all of it. A request that breaks a rule is our mistake.

/** What is wrong with a request, or nothing. */
export function wrongWith({ messages, tools = [], stream }) {
  if (stream !== true) return 'the answer shall not be streamed';
  const names = tools.map((tool) => tool.function.name);
  if (new Set(names).size < names.length) return 'two tools have one name';
  const unfit = tools.find(({ function: { name, parameters } }) => !/^[\w-]{1,64}$/.test(name) || parameters?.type !== 'object');
  if (unfit) return `the tool ${unfit.function.name} cannot be declared`;
  return wrongInside(messages);
}

function wrongInside(messages) {
  let open = [];
  for (const [place, message] of messages.entries()) {
    const { role, content, tool_calls: calls = [] } = message;
    if (role === 'tool') {
      if (!open.includes(message.tool_call_id)) return `message ${place} answers no call`;
      open = open.filter((id) => id !== message.tool_call_id);
    } else if (open.length > 0) {
      return `message ${place} comes before the answers to ${open}`;
    }
    if (role === 'assistant' && !content && calls.length === 0) return `message ${place} says nothing`;
    if (role !== 'assistant' && (typeof content !== 'string' || content === '')) return `message ${place} is empty`;
    if (role === 'system' && place > 0) return `message ${place} is an instruction in the middle`;
    if (role === 'user' && messages[place - 1]?.role === 'user') return `message ${place} is a second user message in a row`;
    for (const call of calls) {
      if (!isObject(call.function.arguments)) return `message ${place} has a call whose arguments are no object`;
    }
    open.push(...calls.map((call) => call.id));
    if (new Set(open).size < open.length) return `message ${place} has two calls of one id`;
  }
  if (open.length > 0) return `the calls ${open} are not answered`;
  return messages.at(-1).role === 'assistant' ? 'the last message is the model\'s own' : undefined;
}

function isObject(json) {
  try {
    const value = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
