"""OpenAI's Python client against the running server. `python.test.mjs` starts both and sets DECK_URL and DECK_KEY."""

import json
import os
import sys
import unittest

import openai

MODEL = "quarterdeck"
BASE_URL = os.environ["DECK_URL"] + "/v1"


def connect(key=os.environ["DECK_KEY"], **options):
    return openai.OpenAI(api_key=key, base_url=BASE_URL, **options)


def saying(text):
    return {"model": MODEL, "messages": [{"role": "user", "content": text}]}


class OpenAiClient(unittest.TestCase):
    def setUp(self):
        self.client = connect()

    def test_the_models_are_listed_and_found_by_name(self):
        self.assertEqual([model.id for model in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).owned_by, "quarterdeck")
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.models.retrieve("gpt-5")
        self.assertEqual(raised.exception.code, "model_not_found")

    def test_an_answer_at_once(self):
        completion = self.client.chat.completions.create(**saying("say Good morning"))
        self.assertEqual(completion.choices[0].message.content, "Good morning")
        self.assertEqual(completion.choices[0].finish_reason, "stop")
        self.assertEqual(completion.usage.total_tokens, 18)

    def test_an_answer_piece_by_piece_with_the_usage_at_its_end(self):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(self.client.chat.completions.create(**saying("say one two three"), **options))
        pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        self.assertEqual("".join(pieces), "one two three")
        self.assertEqual(chunks[-1].usage.total_tokens, 18)

    def test_the_stream_helper_puts_an_answer_together(self):
        with self.client.chat.completions.stream(**saying("say all of it")) as stream:
            completion = stream.get_final_completion()
        self.assertEqual(completion.choices[0].message.content, "all of it")

    def test_a_tool_runs_inside(self):
        call = {"datetime": "2026-01-13T09:30:00Z", "style": "iso"}
        completion = self.client.chat.completions.create(**saying(f"call format_datetime {json.dumps(call)}"))
        self.assertIsNone(completion.choices[0].message.tool_calls)
        self.assertIn("2026-01-13T09:30:00+00:00", completion.choices[0].message.content)

    def test_a_tool_that_needs_approval_runs_when_the_person_approves(self):
        messages = [{"role": "user", "content": os.environ["DECK_BOOKING"]}]
        asked = self.tell(messages)
        self.assertIn("Book “Tea”", asked)
        code = asked.split("approve ")[1].split("`")[0]
        messages += [{"role": "assistant", "content": asked}, {"role": "user", "content": f"approve {code}"}]
        self.tell(messages)
        messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": os.environ["DECK_LOOKING"]}]
        self.assertIn('"existing_events":[{', self.tell(messages))

    def tell(self, messages):
        return self.client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content

    def test_what_cannot_be_answered_is_the_error_that_the_client_knows(self):
        create = self.client.chat.completions.create
        with self.assertRaises(openai.NotFoundError):
            create(model="gpt-5", messages=[{"role": "user", "content": "hi"}])
        with self.assertRaises(openai.BadRequestError):
            create(model=MODEL, messages=[])
        with self.assertRaises(openai.AuthenticationError):
            connect("an-unknown-api-key").chat.completions.create(**saying("hi"))
        with self.assertRaises(openai.InternalServerError) as raised:
            create(**saying("refuse"))
        self.assertIn("does not accept our request", str(raised.exception))
        with self.assertRaises(openai.APIError) as raised:
            list(create(**saying("refuse"), stream=True))
        self.assertIn("does not accept our request", str(raised.exception))


if __name__ == "__main__":
    print(f"openai {openai.__version__}, Python {sys.version.split()[0]}", file=sys.stderr)
    unittest.main(verbosity=2)
