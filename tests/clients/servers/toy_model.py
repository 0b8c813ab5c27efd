"""Writes the smallest language model that can hold a conversation with a tool call, as a GGUF file.

It is a llama of one layer whose attention does nothing: the next token follows from the last one alone. The template
ends a question about the date, a result of a tool and anything else with different tokens, and from each of them a chain
of tokens leads to the end. So a real inference server loads a real file, and every run says the same. The template leaves
out what takes long to read byte by byte: most of the instructions, and all of the tools but their names.
"""

import struct
import sys

CHAINS = [
    ["<|call|>", "<tool_call>", "\n", '{"name": ', '"format_datetime"', ', "arguments": ', '{"datetime": ',
     '"2026-01-13T09:30:00Z"', ', "style": "date"', "}}", "\n\n", "</tool_call>", "<|end|>"],
    ["<|tell|>", "It", " is", " the", " thirteenth", ".", "<|end|>"],
    ["<|chat|>", "Good", " morning", " to", " you", "!", "<|end|>"],
]

TEMPLATE = """\
{%- for message in messages %}
{%- if message.role == 'tool' -%}
<|turn|>tool
<tool_response>
{{ message.content }}
</tool_response>
{%- elif message.role == 'assistant' -%}
<|turn|>assistant
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}
{%- else -%}
<|turn|>{{ message.role }}
{{ message.content if message.role == 'user' else message.content[:100] }}
{%- endif -%}
{%- if loop.first and tools %}
# Tools
{%- for tool in tools %}
{{ tool.function.name }}
{%- endfor %}
For each call, write <tool_call>
{"name": ..., "arguments": ...}
</tool_call>
{%- endif -%}
<|end|>
{%- endfor %}
{%- if add_generation_prompt %}
{%- if messages[-1].role == 'tool' %}<|tell|>
{%- elif 'date' in messages[-1].content %}<|call|>
{%- else %}<|chat|>
{%- endif %}
{%- endif %}"""

WIDTH = 64
CONTEXT = 131072
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def vocabulary():
    """Tokens with their kinds. What is not a word of ours is spelt byte by byte."""
    tokens = [("<unk>", UNKNOWN), ("<|end|>", CONTROL), ("<|turn|>", CONTROL)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    for chain in CHAINS:
        for token in chain:
            if token not in [text for text, _ in tokens]:
                is_mark = token.startswith("<|")
                tokens.append((token, CONTROL if is_mark else USER_DEFINED))
    return tokens


def tensors(tokens):
    place = {text: number for number, (text, _) in enumerate(tokens)}
    chained = sorted({token for chain in CHAINS for token in chain}, key=place.get)
    axis = {token: number for number, token in enumerate(chained)}
    assert len(chained) < WIDTH - 1
    embedding = [[0.0] * WIDTH for _ in tokens]
    output = [[0.0] * WIDTH for _ in tokens]
    for text, number in place.items():
        embedding[number][axis.get(text, WIDTH - 1)] = 1.0
    for chain in CHAINS:
        for now, then in zip(chain, chain[1:]):
            output[place[then]][axis[now]] = 10.0
    output[place["<|end|>"]][WIDTH - 1] = 10.0
    ones, nothing = [[1.0] * WIDTH], [[0.0] * WIDTH for _ in range(WIDTH)]
    named = {"token_embd.weight": embedding, "output.weight": output, "output_norm.weight": ones}
    named |= {f"blk.0.{name}_norm.weight": ones for name in ("attn", "ffn")}
    named |= {f"blk.0.attn_{name}.weight": nothing for name in ("q", "k", "v", "output")}
    named |= {f"blk.0.ffn_{name}.weight": nothing for name in ("gate", "up", "down")}
    return named


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(given):
    """A value of the header, with its type in front."""
    match given:
        case bool():
            return struct.pack("<I?", 7, given)
        case int():
            return struct.pack("<II", 4, given)
        case float():
            return struct.pack("<If", 6, given)
        case str():
            return struct.pack("<I", 8) + string(given)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(given)) + b"".join(map(string, given))
        case [float(), *_]:
            return struct.pack(f"<IIQ{len(given)}f", 9, 6, len(given), *given)
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(given)}i", 9, 5, len(given), *given)


def header(tokens):
    return {
        "general.architecture": "llama",
        "general.name": "toy",
        "llama.context_length": CONTEXT,
        "llama.embedding_length": WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": WIDTH,
        "llama.attention.head_count": 1,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": WIDTH,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [text for text, _ in tokens],
        "tokenizer.ggml.scores": [0.0 for _ in tokens],
        "tokenizer.ggml.token_type": [kind for _, kind in tokens],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def gguf():
    tokens = vocabulary()
    facts, named = header(tokens), tensors(tokens)
    out = [b"GGUF", struct.pack("<IQQ", 3, len(named), len(facts))]
    out += [string(key) + value(given) for key, given in facts.items()]
    data = b""
    for name, rows in named.items():
        shape = [WIDTH] if len(rows) == 1 else [WIDTH, len(rows)]
        numbers = [number for row in rows for number in row]
        out.append(string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data)))
        data += struct.pack(f"<{len(numbers)}f", *numbers)
        data += bytes(-len(data) % 32)
    head = b"".join(out)
    return head + bytes(-len(head) % 32) + data


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        file.write(gguf())
