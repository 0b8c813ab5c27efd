"""A real mail server for the tests: aiosmtpd on a free port of loopback, and Python's own reader of messages.

Takes one argument: plain, starttls or tls. Prints a line of JSON with the port and the certificate that vouches for it,
then one for every message. Ends when its input does.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

import trustme
from aiosmtpd.smtp import SMTP, AuthResult


def say(value):
    print(json.dumps(value), flush=True)


class Handler:
    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = [
            {
                "type": part.get_content_type(),
                "parameters": dict(part["content-type"].params),
                "text": part.get_content() if part.get_content_maintype() == "text" else None,
            }
            for part in message.walk()
            if not part.is_multipart()
        ]
        say(
            {
                "from": envelope.mail_from,
                "to": envelope.rcpt_tos,
                "subject": message["subject"],
                "defects": [str(defect) for part in message.walk() for defect in part.defects],
                "user": session.auth_data and session.auth_data.login.decode(),
                "parts": parts,
            }
        )
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    is_right = data.login == b"deck" and data.password == b"right"
    return AuthResult(success=is_right, handled=is_right, auth_data=data)


async def main(mode):
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)

    def protocol():
        if mode == "plain":
            return SMTP(Handler())
        return SMTP(
            Handler(),
            require_starttls=mode == "starttls",
            tls_context=context if mode == "starttls" else None,
            auth_required=True,
            auth_require_tls=mode == "starttls",
            authenticator=authenticate,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, "127.0.0.1", 0, ssl=context if mode == "tls" else None)
    say({"port": server.sockets[0].getsockname()[1], "ca": authority.cert_pem.bytes().decode()})
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(main(sys.argv[1]))
