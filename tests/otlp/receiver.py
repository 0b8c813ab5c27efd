"""Receives OTLP over HTTP, checks every span against the conventions, and prints what came as lines of JSON.

The first line is the port. A span that breaks a rule has its complaints in `problems`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}
# By operation: the kinds that a span may have, and the attributes that it must have.
RULES = {
    "invoke_agent": ({"INTERNAL"}, {"gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.conversation.id"}),
    "chat": ({"CLIENT"}, {"gen_ai.provider.name", "gen_ai.request.model"}),
    "generate_content": ({"CLIENT"}, {"gen_ai.provider.name", "gen_ai.request.model"}),
    "execute_tool": ({"INTERNAL", "SERVER"}, {"gen_ai.tool.name", "gen_ai.tool.call.id"}),
    "reconnect": ({"CLIENT"}, {"gen_ai.provider.name", "gen_ai.request.model"}),
    "retrieval": ({"INTERNAL"}, {"gen_ai.data_source.id"}),
}
printing = Lock()


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    return getattr(any_value, kind) if kind else None


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def problems(span, known, kind):
    found = []
    operation = known.get("gen_ai.operation.name")
    if operation not in RULES:
        return [f"unknown operation {operation!r}"]
    kinds, required = RULES[operation]
    if kind not in kinds:
        found.append(f"kind {kind}")
    found += [f"no {name}" for name in sorted(required - known.keys())]
    subject = {
        "invoke_agent": "gen_ai.agent.name",
        "execute_tool": "gen_ai.tool.name",
        "retrieval": "gen_ai.data_source.id",
    }.get(operation, "gen_ai.request.model")
    prefix = known["mcp.method.name"] if kind == "SERVER" and "mcp.method.name" in known else operation
    if span.name != f"{prefix} {known.get(subject)}":
        found.append(f"name {span.name!r}")
    if len(span.trace_id) != 16 or len(span.span_id) != 8 or not any(span.trace_id) or not any(span.span_id):
        found.append("ids")
    if span.end_time_unix_nano < span.start_time_unix_nano:
        found.append("ends before it begins")
    if (span.status.code == 2) != ("error.type" in known):
        found.append("error.type and status disagree")
    for name, wanted in [("gen_ai.usage.input_tokens", int), ("gen_ai.response.finish_reasons", list)]:
        if name in known and not isinstance(known[name], wanted):
            found.append(f"{name} is {known[name]!r}")
    return found


def spans(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = attributes(resource.resource.attributes).get("service.name")
        for scope in resource.scope_spans:
            for span in scope.spans:
                known, kind = attributes(span.attributes), KINDS.get(span.kind)
                yield {
                    "signal": "span",
                    "service": service,
                    "scope": scope.scope.name,
                    "name": span.name,
                    "kind": kind,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "error": span.status.code == 2,
                    "attributes": known,
                    "events": [{"name": e.name, "attributes": attributes(e.attributes)} for e in span.events],
                    "links": [{"trace": link.trace_id.hex(), "id": link.span_id.hex()} for link in span.links],
                    "problems": problems(span, known, kind),
                }


def metrics(body):
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.histogram.data_points:
                    yield {
                        "signal": "metric",
                        "name": metric.name,
                        "unit": metric.unit,
                        "count": point.count,
                        "sum": point.sum,
                        "attributes": attributes(point.attributes),
                    }


def logs(body):
    for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield {
                    "signal": "log",
                    "severity": record.severity_text,
                    "body": value(record.body),
                    "attributes": attributes(record.attributes),
                }


READERS = {"/v1/traces": spans, "/v1/metrics": metrics, "/v1/logs": logs}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        is_protobuf = self.headers["content-type"] == "application/x-protobuf"
        reader = READERS.get(self.path) if is_protobuf else None
        for item in reader(body) if reader else [{"signal": "refused", "path": self.path}]:
            with printing:
                print(json.dumps(item), flush=True)
        self.send_response(200 if reader else 400)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(json.dumps({"port": server.server_address[1]}), flush=True)
sys.stdin.close()
server.serve_forever()
