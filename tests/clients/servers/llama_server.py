"""Runs llama.cpp's own server with the toy model, on a free port, until it is told to stop. Prints its address."""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 65536
params.n_parallel = 1
params.cpuparams.n_threads = 2
params.use_jinja = True
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
