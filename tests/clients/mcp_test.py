"""MCP's client for Python against the running server. `mcp-clients.test.mjs` starts it and sets DECK_MCP."""

import asyncio
import itertools
import json
import logging
import os
import subprocess
import unittest

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult

URL = os.environ["DECK_MCP"]
DAYS = iter(json.loads(os.environ["DECK_DAYS"]))


def ticked(params, value):
    boxes = [name for name, schema in params.requested_schema["properties"].items() if schema["type"] == "boolean"]
    return ElicitResult(action="accept", content={name: value for name in boxes})


def trail():
    """The lines of the audit trail about the tool that counts."""
    query = ["audit", "query", "--data", os.environ["DECK_DATA"], "--tool", "count_slowly", "--event", "tool_execution"]
    done = subprocess.run([os.environ["DECK_PROGRAM"], *query, "--format", "json"], check=True, capture_output=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Promises:
    """What holds in either generation of the protocol; `mode` says which."""

    mode = ""

    def connect(self, answer=None):
        async def elicit(context, params):
            return answer(params)

        return Client(URL, mode=self.mode, elicitation_callback=elicit if answer else None)

    async def is_booked(self, client, teatime):
        result = await client.call_tool("calendar_get_availability", teatime)
        return bool(result.structured_content["existing_events"])

    async def test_the_tools_are_listed(self):
        async with self.connect() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            self.assertTrue(tools["validate_email"].annotations.read_only_hint)
            self.assertFalse(tools["calendar_create_event"].annotations.read_only_hint)

    async def test_a_call_and_a_call_that_is_refused(self):
        async with self.connect() as client:
            good = await client.call_tool("validate_email", {"email": "ann@example.com"})
            self.assertTrue(good.structured_content["valid"])
            wrong = await client.call_tool("validate_email", {"mail": "ann@example.com"})
            self.assertTrue(wrong.is_error)
            with self.assertRaises(MCPError):
                await client.call_tool("no_such_tool", {})

    async def test_an_approved_booking_is_there(self):
        day = next(DAYS)
        async with self.connect(lambda params: ticked(params, True)) as client:
            booked = await client.call_tool("calendar_create_event", day["tea"])
            self.assertFalse(booked.is_error, booked)
            self.assertTrue(await self.is_booked(client, day["teatime"]))

    async def test_a_booking_that_was_denied_is_not_there(self):
        answers = [lambda _: ElicitResult(action="decline"), lambda params: ticked(params, False)]
        for answer in answers:
            day = next(DAYS)
            async with self.connect(answer) as client:
                refused = await client.call_tool("calendar_create_event", day["tea"])
                self.assertTrue(refused.is_error)
                self.assertFalse(await self.is_booked(client, day["teatime"]))

    async def test_progress_is_told(self):
        seen = []

        async def step(progress, total, message):
            seen.append((progress, message))

        async with self.connect() as client:
            result = await client.call_tool("count_slowly", {"to": 5}, progress_callback=step)
        self.assertEqual(result.structured_content, {"counted": 5})
        self.assertGreaterEqual(len(seen), 3)
        self.assertTrue(all(before[0] < after[0] for before, after in itertools.pairwise(seen)), seen)

    async def test_a_cancelled_call_is_stopped(self):
        earlier = len(trail())
        begun = asyncio.Event()

        async def step(progress, total, message):
            begun.set()

        async with self.connect() as client:
            call = asyncio.create_task(client.call_tool("count_slowly", {"to": 1000}, progress_callback=step))
            await asyncio.wait_for(begun.wait(), 20)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            for _ in range(200):
                lines = await asyncio.to_thread(trail)
                if len(lines) > earlier:
                    break
                await asyncio.sleep(0.1)
        self.assertEqual(len(lines), earlier + 1, "the call has an end in the audit trail")


class Handshake(Promises, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class WithoutSessions(Promises, unittest.IsolatedAsyncioTestCase):
    mode = "auto"

    async def test_it_finds_the_newer_protocol_by_itself(self):
        async with self.connect() as client:
            self.assertEqual(client.protocol_version, "2026-07-28")


if __name__ == "__main__":
    # The event loop of such tests tells of every step that took long.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    unittest.main(verbosity=2)
